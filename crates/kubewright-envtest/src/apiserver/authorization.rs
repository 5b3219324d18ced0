//! Who decides who may do what, and the servers that are asked about users: `--authorization-*` and
//! `--authentication-token-webhook-*`.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, anyhow, bail};
use kubewright_control_plane::{
    Builder, Remote, TokenWebhook,
    authz::{Configuration, Mode, Policies, ReviewVersion, Reviewer},
};

use super::read;
use crate::flags::Flags;

const CONFIGURATION: &str = "authorization-config";
const POLICIES: &str = "authorization-policy-file";
const REVIEWER: &str = "authorization-webhook-config-file";
const TOKENS: &str = "authentication-token-webhook-config-file";

/// What kube-apiserver does unless it is told otherwise (`pkg/kubeapiserver/options/authorization.go`).
const DEFAULT_MODE: &str = "AlwaysAllow";
/// As old as it is, the default version of both kinds of review.
const DEFAULT_VERSION: &str = "v1beta1";

/// # Errors
/// When a mode is none or lacks its file, or a file does not hold what it should.
pub(super) fn configure(flags: &Flags, builder: Builder) -> anyhow::Result<Builder> {
    let policies = match flags.text(POLICIES) {
        Some(path) => Some(Policies::parse(&read(POLICIES, path)?, path)?),
        None => None,
    };
    let modes = match flags.text(CONFIGURATION) {
        Some(path) => configured(flags, path, policies)?,
        None => {
            let names = flags.list("authorization-mode").unwrap_or_else(|| vec![DEFAULT_MODE]);
            let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
            Mode::of_names(&names, policies, reviewer(flags)?)?
        }
    };
    let builder = builder.authorization(modes);
    Ok(match token_webhook(flags)? {
        Some(webhook) => builder.token_webhook(webhook),
        None => builder,
    })
}

/// The modes of a file, which is read once: changes of it are not looked for.
fn configured(flags: &Flags, path: &str, policies: Option<Policies>) -> anyhow::Result<Vec<Mode>> {
    let legacy = ["authorization-mode", REVIEWER, "authorization-webhook-version"];
    let lifetimes =
        ["authorized", "unauthorized"].map(|which| format!("authorization-webhook-cache-{which}-ttl"));
    if legacy.into_iter().chain(lifetimes.iter().map(String::as_str)).any(|flag| flags.text(flag).is_some()) {
        bail!(
            "--{CONFIGURATION} can not be specified when --authorization-mode or --authorization-webhook-* flags are defined"
        );
    }
    let open = |path: &str| remote(CONFIGURATION, path).map_err(|why| format!("{why:#}"));
    let modes =
        Configuration::parse(&read(CONFIGURATION, path)?).and_then(|read| read.modes(policies, &open));
    modes.with_context(|| format!("--{CONFIGURATION}: {path}"))
}

fn reviewer(flags: &Flags) -> anyhow::Result<Option<Reviewer>> {
    let Some(path) = flags.text(REVIEWER) else { return Ok(None) };
    let version = flags.text("authorization-webhook-version").unwrap_or(DEFAULT_VERSION);
    let known = ReviewVersion::of_name(version)
        .ok_or_else(|| anyhow!("--authorization-webhook-version: {version:?} is neither v1 nor v1beta1"))?;
    let lifetime = |which: &str, default: u64| {
        let given = flags.duration(&format!("authorization-webhook-cache-{which}-ttl"));
        given.unwrap_or(Duration::from_secs(default))
    };
    let reviewer = Reviewer::new(remote(REVIEWER, path)?, known);
    Ok(Some(reviewer.remembering(lifetime("authorized", 300), lifetime("unauthorized", 30))))
}

fn token_webhook(flags: &Flags) -> anyhow::Result<Option<TokenWebhook>> {
    let Some(path) = flags.text(TOKENS) else { return Ok(None) };
    let version = flags.text("authentication-token-webhook-version").unwrap_or(DEFAULT_VERSION);
    let webhook = TokenWebhook::new(remote(TOKENS, path)?, version)?;
    Ok(Some(match flags.duration("authentication-token-webhook-cache-ttl") {
        Some(lifetime) => webhook.remembering(lifetime),
        None => webhook,
    }))
}

/// The server of a kubeconfig; files that it names are beside it.
fn remote(flag: &str, path: &str) -> anyhow::Result<Remote> {
    let folder = Path::new(path).parent().unwrap_or(Path::new("."));
    let beside = |file: &str| fs::read(folder.join(file));
    Remote::of_kubeconfig(&read(flag, path)?, &beside).with_context(|| format!("--{flag}: {path}"))
}
