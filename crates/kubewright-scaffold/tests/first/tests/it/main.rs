// Copyright 2026 TakanariKo.
// SPDX-License-Identifier: Apache-2.0

//! Tests of the operator, in one program. Kept by `kubewright create`: what you change here, it merges.

mod police_whitelist;
