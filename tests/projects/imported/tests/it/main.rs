// SPDX-License-Identifier: MIT

//! Tests of the operator, in one program. Kept by `kubewright create`: what you change here, it merges.
