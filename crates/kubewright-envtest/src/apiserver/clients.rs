//! Who clients are, besides what client certificates say: tokens in a file, a proxy in front, anonymous ones.

use anyhow::Context;
use kubewright_control_plane::{Builder, Bundle, FrontProxy, token_file};

use super::read;
use crate::flags::Flags;

const TOKENS: &str = "token-auth-file";
const PROXY_CA: &str = "requestheader-client-ca-file";

/// # Errors
/// When a file does not hold what it should, or a header has no name.
pub(super) fn configure(flags: &Flags, mut builder: Builder) -> anyhow::Result<Builder> {
    if let Some(path) = flags.text(TOKENS) {
        for (token, user) in token_file::parse(&read(TOKENS, path)?, path)? {
            builder = builder.token(token, user);
        }
    }
    if let Some(path) = flags.text(PROXY_CA) {
        let ca = Bundle::of_pem(read(PROXY_CA, path)?.as_bytes());
        let ca = ca.with_context(|| format!("--{PROXY_CA}: {path}"))?;
        builder = builder.front_proxy(front_proxy(flags, FrontProxy::new(ca))?);
    }
    if let Some(known) = flags.switch("enable-bootstrap-token-auth") {
        builder = builder.bootstrap_tokens(known);
    }
    if let Some(allowed) = flags.switch("anonymous-auth") {
        builder = builder.anonymous(allowed);
    }
    Ok(builder)
}

fn front_proxy(flags: &Flags, mut proxy: FrontProxy) -> anyhow::Result<FrontProxy> {
    let list = |name: &str| {
        let list = flags.list(&format!("requestheader-{name}"));
        list.map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    if let Some(names) = list("allowed-names") {
        proxy = proxy.allowed_names(names);
    }
    if let Some(names) = list("username-headers") {
        proxy = proxy.username_headers(&names)?;
    }
    if let Some(names) = list("uid-headers") {
        proxy = proxy.uid_headers(&names)?;
    }
    if let Some(names) = list("group-headers") {
        proxy = proxy.group_headers(&names)?;
    }
    if let Some(prefixes) = list("extra-headers-prefix") {
        proxy = proxy.extra_header_prefixes(&prefixes)?;
    }
    Ok(proxy)
}
