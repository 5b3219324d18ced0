//! Container images on this machine: what they are called ([`Reference`]), and the store of those that were loaded.

mod reference;

pub use self::reference::Reference;
