//! Dynamic admission on a whole server in this process, under virtual time.

mod final_object;
mod policies;
mod resets;
mod subresources;
mod support;
mod webhooks;
