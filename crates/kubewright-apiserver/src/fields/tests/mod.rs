//! Laws that hold for all sets and objects.

mod laws;
