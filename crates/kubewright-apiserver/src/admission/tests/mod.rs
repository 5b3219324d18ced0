//! Dynamic admission on a whole server in this process, under virtual time.

mod support;
mod webhooks;
