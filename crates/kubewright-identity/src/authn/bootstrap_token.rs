//! Tokens by which machines join a cluster: Secrets of the type `bootstrap.kubernetes.io/token`
//! (`k8s.io/kubernetes/plugin/pkg/auth/authenticator/token/bootstrap`, `k8s.io/cluster-bootstrap`).

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use ring::hmac;
use serde::Deserialize;
use subtle::ConstantTimeEq as _;

use super::user::User;
use super::{Lookup, read};

/// The type of the Secrets.
pub const SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";
/// Where they are.
pub const NAMESPACE: &str = "kube-system";
/// What their names begin with; the id follows.
pub const NAME_PREFIX: &str = "bootstrap-token-";
/// The group of everybody who has such a token, and the beginning of others that a token may name.
const GROUP: &str = "system:bootstrappers";

#[derive(Deserialize)]
struct StoredSecret {
    metadata: Metadata,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    deletion_timestamp: Option<Timestamp>,
}

/// How long a token is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// For ever.
    Never,
    /// Until then.
    At(Timestamp),
    /// What it says is no time: not at all.
    Unreadable,
}

impl Expiry {
    /// Reads the field `expiration` of a Secret, which may be empty.
    #[must_use]
    pub fn read(text: &str) -> Self {
        match text {
            "" => Self::Never,
            text => text.parse().map_or(Self::Unreadable, Self::At),
        }
    }

    /// Whether the token is not good any more.
    #[must_use]
    pub fn has_passed(self, now: Timestamp) -> bool {
        match self {
            Self::Never => false,
            Self::At(end) => end <= now,
            Self::Unreadable => true,
        }
    }
}

/// The id and the secret of a token, which is `id.secret`: six and sixteen digits and small letters.
#[must_use]
pub fn parse(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
    (id.len() == 6 && secret.len() == 16 && is_plain(id) && is_plain(secret)).then_some((id, secret))
}

/// Whose token this is, as far as it is that of a Secret.
pub(super) fn user(token: &str, now: Timestamp, lookup: Lookup<'_>) -> Option<User> {
    let (id, secret) = parse(token)?;
    let stored: StoredSecret = read(lookup, "/secrets", &format!("{NAMESPACE}/{NAME_PREFIX}{id}"))?;
    if stored.metadata.deletion_timestamp.is_some() || stored.kind != SECRET_TYPE {
        return None;
    }
    let field = |name: &str| {
        let bytes = stored.data.get(name).and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let is_same: bool = field("token-secret").as_bytes().ct_eq(secret.as_bytes()).into();
    let is_good = is_same
        && field("token-id") == id
        && !Expiry::read(&field("expiration")).has_passed(now)
        && field("usage-bootstrap-authentication") == "true";
    let groups = is_good.then(|| groups(&field("auth-extra-groups"))).flatten()?;
    Some(User::new(format!("system:bootstrap:{id}"), groups))
}

/// The groups that a token gives; none where one that it names is not for it to give.
fn groups(extra: &str) -> Option<BTreeSet<String>> {
    let named = extra.split(',').filter(|_| !extra.is_empty());
    let is_fine = |group: &&str| {
        let rest = group.strip_prefix(GROUP).and_then(|rest| rest.strip_prefix(':')).unwrap_or_default();
        let is_plain = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
        rest.len() <= 256
            && rest.bytes().all(|byte| is_plain(byte) || matches!(byte, b':' | b'-'))
            && rest.bytes().last().is_some_and(is_plain)
    };
    let named: Vec<&str> = named.collect();
    let all = || std::iter::once(GROUP).chain(named.iter().copied()).map(str::to_owned).collect();
    named.iter().all(is_fine).then(all)
}

/// The signature that who holds a token knows a text by: a JSON Web Signature without its payload
/// (`k8s.io/cluster-bootstrap/token/jws`).
#[must_use]
pub fn detached_signature(text: &str, id: &str, secret: &str) -> String {
    let header = URL_SAFE_NO_PAD.encode(serde_json::json!({"alg": "HS256", "kid": id}).to_string());
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(text));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    format!("{header}..{}", URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes())))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kubewright_world::SIMULATION_START as NOW;
    use serde_json::{Value, json};

    use super::*;

    const TOKEN: &str = "abcdef.0123456789abcdef";

    fn secret(fields: &[(&str, &str)]) -> Value {
        let mut data = BTreeMap::from([
            ("token-id", "abcdef"),
            ("token-secret", "0123456789abcdef"),
            ("usage-bootstrap-authentication", "true"),
        ]);
        data.extend(fields.iter().copied());
        let data: BTreeMap<_, _> = data.into_iter().map(|(key, text)| (key, STANDARD.encode(text))).collect();
        json!({"metadata": {}, "type": SECRET_TYPE, "data": data})
    }

    fn found(stored: &Value) -> Option<User> {
        let lookup = |collection: &str, key: &str| {
            let is_it = (collection, key) == ("/secrets", "kube-system/bootstrap-token-abcdef");
            is_it.then(|| Bytes::from(stored.to_string()))
        };
        user(TOKEN, NOW, &lookup)
    }

    #[test]
    fn a_token_speaks_for_its_id_and_the_groups_that_it_names() {
        let user = found(&secret(&[])).expect("good");
        assert_eq!((user.name.as_str(), user.groups), ("system:bootstrap:abcdef", vec![GROUP.to_owned()]));
        let named = [("auth-extra-groups", "system:bootstrappers:z,system:bootstrappers:a:b")];
        let groups = found(&secret(&named)).expect("good").groups;
        assert_eq!(groups, [GROUP, "system:bootstrappers:a:b", "system:bootstrappers:z"]);
    }

    #[test]
    fn it_is_nobodys_when_anything_about_it_is_wrong() {
        for wrong in [
            [("token-secret", "0123456789abcdee")],
            [("token-id", "abcdee")],
            [("usage-bootstrap-authentication", "yes")],
            [("expiration", "2000-01-01T00:00:00Z")],
            [("expiration", "tomorrow")],
            [("auth-extra-groups", "system:masters")],
            [("auth-extra-groups", "system:bootstrappers:a,")],
            [("auth-extra-groups", "system:bootstrappers:A")],
        ] {
            assert_eq!(found(&secret(&wrong)), None, "{wrong:?}");
        }
        assert!(found(&secret(&[("expiration", "2999-01-01T00:00:00Z")])).is_some());
        let mut opaque = secret(&[]);
        opaque["type"] = "Opaque".into();
        assert_eq!(found(&opaque), None);
        let mut going = secret(&[]);
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(found(&going), None);
    }

    #[test]
    fn only_such_texts_are_tokens() {
        assert_eq!(parse(TOKEN), Some(("abcdef", "0123456789abcdef")));
        for wrong in
            ["", "abcdef", "abcde.0123456789abcdef", "ABCDEF.0123456789abcdef", "abcdef.0123456789abcde!"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_text_is_signed_as_kube_controller_manager_does_it() {
        // Of `jws_test.go`.
        assert_eq!(
            detached_signature("", "joshua", "my voice is my passcode"),
            "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..7Ui1ALizW4jXphVUB7xUqC9vLYLL9RZeOFfVLoB7Tgk"
        );
    }
}
