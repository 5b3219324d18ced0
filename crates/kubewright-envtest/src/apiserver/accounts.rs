//! The tokens of service accounts: `--service-account-*`, `--api-audiences`.

use anyhow::Context;
use kubewright_control_plane::{Builder, PublicKey, ServiceAccounts, TokenKey};

use super::read;
use crate::flags::Flags;

const SIGNING: &str = "service-account-signing-key-file";
const VERIFYING: &str = "service-account-key-file";

/// Keys and issuers. kube-apiserver insists on both; without, there is a key of this process's own.
///
/// # Errors
/// When a file holds no key, or what is said of issuers does not hold.
pub(super) fn configure(flags: &Flags, builder: Builder) -> anyhow::Result<Builder> {
    let key = match flags.text(SIGNING) {
        Some(path) => {
            TokenKey::of_pem(&read(SIGNING, path)?).with_context(|| format!("--{SIGNING}: {path}"))?
        }
        None => TokenKey::generate()?,
    };
    let mut verifying = Vec::new();
    for path in flags.all(VERIFYING) {
        let keys = PublicKey::all_of_pem(&read(VERIFYING, path)?);
        verifying.extend(keys.with_context(|| format!("--{VERIFYING}: {path}"))?);
    }
    let own = flags.text(SIGNING).is_none().then(|| key.public().clone());
    let mut accounts = ServiceAccounts::new(key);
    if !verifying.is_empty() {
        verifying.extend(own);
        accounts = accounts.verified_by(verifying);
    }
    if let issuers @ [_, ..] = flags.all("service-account-issuer") {
        accounts = accounts.issuers(issuers.to_vec())?;
    }
    if let Some(audiences) = flags.list("api-audiences") {
        accounts = accounts.audiences(audiences.into_iter().map(str::to_owned).collect());
    }
    if let Some(maximum) = flags.duration("service-account-max-token-expiration").filter(|max| !max.is_zero())
    {
        accounts = accounts.max_expiration(maximum)?;
    }
    if let Some(extend) = flags.switch("service-account-extend-token-expiration") {
        accounts = accounts.extend_expiration(extend);
    }
    if let Some(uri) = flags.text("service-account-jwks-uri") {
        accounts = accounts.jwks_uri(uri)?;
    }
    Ok(builder.service_accounts(accounts))
}
