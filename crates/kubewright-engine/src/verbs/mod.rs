//! The verbs: one way through create, read, update, patch and delete for every kind, built-in or custom; a file for each.
//!
//! A kind is only asked for its data and its pure functions ([`kubewright_kinds`]). A verb is a function over the
//! [`Engine`](crate::Engine).

mod bind;
mod create;
mod custom;
mod definitions;
mod delete;
mod device_claims;
mod edit;
mod evict;
pub(crate) mod follow_up;
mod member;
mod objects;
mod ownership;
mod part;
mod patch;
mod preconditions;
mod proposal;
mod read;
mod reset;
mod scale;
mod select;
mod swap;
mod unread;
mod update;
mod used_secrets;
mod written;

pub use bind::bind;
pub use create::create;
pub use delete::{delete, delete_collection};
pub use edit::edit;
pub use evict::evict;
pub use follow_up::api_services::report as report_availability;
pub use follow_up::has_follow_up;
pub use member::Member;
pub use ownership::OwnedWrite;
pub use part::Part;
pub use patch::patch;
pub use read::{List, expired_page, get, get_stored, list};
pub(crate) use read::{not_in_the_future, too_old};
pub(crate) use reset::keep_origin;
pub use reset::reset;
pub use scale::{get_scale, patch_scale, paths as scale_paths, scale_kind, update_scale};
pub(crate) use select::select;
pub use update::update;
pub use used_secrets::label_used;
pub use written::{WriteResult, Written};
