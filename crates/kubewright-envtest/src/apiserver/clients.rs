//! Who clients are, besides what client certificates say: tokens in a file, a proxy in front, anonymous ones.

use anyhow::Context;
use kubewright_control_plane::{Builder, Bundle, FrontProxy, token_file};

use super::read;
use crate::flags::Flags;

const TOKENS: &str = "token-auth-file";
const PROXY_CA: &str = "requestheader-client-ca-file";
const PROXY_CERTIFICATE: &str = "proxy-client-cert-file";
const PROXY_KEY: &str = "proxy-client-key-file";

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
    // As kube-apiserver, which shows nothing where one of the two is missing.
    builder = match (flags.text(PROXY_CERTIFICATE), flags.text(PROXY_KEY)) {
        (Some(chain), Some(key)) => {
            let (chain, key) = (read(PROXY_CERTIFICATE, chain)?, read(PROXY_KEY, key)?);
            builder.proxy_client_certificate(chain, key)
        }
        _ => builder.without_proxy_client_certificate(),
    };
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
