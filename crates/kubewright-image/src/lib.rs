//! Container images on this machine: what they are called ([`Reference`]), the [`Store`] of those that were loaded, and
//! their files, unpacked ([`Store::root`]).
//!
//! All of it is blocking; nothing asks a registry.
//!
//! ```no_run
//! use kubewright_image::{Reference, Store};
//!
//! let store = Store::open(&Store::default_path()?)?;
//! if let Some(image) = store.get(&Reference::parse("busybox")?)? {
//!     println!("{:?} in {}", image.config.cmd, store.root(&image)?.display());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod archive;
mod compression;
mod config;
mod digest;
mod error;
mod limits;
mod oci;
mod platform;
mod reference;
mod store;
mod tarball;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod unpack;

pub use self::{
    archive::Source,
    config::Config,
    digest::{Digest, NoDigest},
    error::Error,
    limits::Limits,
    reference::{Reference, ReferenceError},
    store::{Image, Layer, Loaded, Removed, Store},
    unpack::resolve,
};
