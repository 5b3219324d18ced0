// Copyright 2026 Example.
// SPDX-License-Identifier: MIT

//! Tests of the operator, in one program. Kept by `kubewright create`: what you change here, it merges.

mod crew_captain;
mod crew_captain_v1;
mod crew_captain_v1beta1;
mod sea_creatures_captain;
mod ship_frigate;
