//! The promises of the test harness.

mod attribute;
