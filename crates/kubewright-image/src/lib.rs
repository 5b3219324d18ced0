//! Container images on this machine: what they are called ([`Reference`]), the [`Store`] of those that were loaded, and
//! their files, unpacked ([`Store::root`]).
//!
//! All of it is blocking, but [`registry`].
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
mod elf;
mod error;
mod limits;
mod make;
mod oci;
mod platform;
mod reference;
#[cfg(feature = "registry")]
pub mod registry;
mod store;
mod tarball;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod unpack;

pub use self::{
    archive::Source,
    config::Config,
    digest::{Digest, NoDigest},
    elf::{Linkage, Program},
    error::Error,
    limits::Limits,
    make::{Made, Recipe, export},
    reference::{Reference, ReferenceError},
    store::{Image, Layer, Loaded, Removed, Store},
    unpack::resolve,
};
