//! What operators are tried with, how what they did is judged, and how that is told: the pure part of `kubewright trial`.
//!
//! A [`Plan`](plan::Plan) says what is asked of an operator and what goes wrong meanwhile. Who carries it out writes down a
//! [`Story`](story::Story): writes, requests, how the program ended, and the [`State`](state::State) after each step.
//! [`judge`](judge::judge) compares it with what [undisturbed runs](known::Known) came to, and gives [`Finding`](finding::Finding)s.
//! [`planner`] makes plans of an undisturbed story, [`report`] tells what was found.
//!
//! Nothing is known of the operator but its manifests, and nothing here acts: no clock, no file, no network.

pub mod change;
pub mod finding;
pub mod judge;
pub mod known;
mod meaning;
pub mod plan;
pub mod planner;
mod record;
pub mod report;
pub mod stable;
pub mod state;
pub mod story;
