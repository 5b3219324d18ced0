//! Configuration that pods read: config maps and secrets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kubewright_codec::json;
use kubewright_meta::FieldError;
use serde_json::Value;

use super::at::At;
use super::errors::Errors;
use super::{Again, Rules, fill, text};

/// How many bytes of data there may be.
const LIMIT: usize = 1024 * 1024;
const FROZEN: &str = "field is immutable when `immutable` is set";

/// The rules of config maps.
pub(crate) const fn config_maps() -> Rules {
    Rules {
        keeps_empty_maps: true,
        again: Again::ObjectAfter,
        validate: |map| Errors::of(|errors| check_map(&At::root(map), errors)),
        validate_update: |new, old| {
            Errors::of(|errors| {
                // Texts without entries are as good as none, bytes are not.
                let texts: Same = |now, then| now.same_or_empty(then);
                check_frozen(new, old, &[("data", texts), ("binaryData", is_as_given)], errors);
            })
        },
        ..Rules::none()
    }
}

/// The rules of secrets.
pub(crate) const fn secrets() -> Rules {
    Rules {
        keeps_empty_maps: true,
        default: |secret| {
            take_plain_data(secret);
            fill::blank(secret, "type", "Opaque");
        },
        prepare_update: |new, old| {
            // A replacement may leave the type out.
            if new["type"] == "Opaque" && At::root(old).get("type").text() == "Opaque" {
                fill::keep(new, old, "type");
            }
        },
        again: Again::ObjectAfter,
        validate: |secret| Errors::of(|errors| check_secret(&At::root(secret), errors)),
        validate_update: |new, old| {
            Errors::of(|errors| {
                errors.immutable(&At::root(new).get("type"), &At::root(old).get("type"));
                check_frozen(new, old, &[("data", is_as_given)], errors);
            })
        },
        ..Rules::none()
    }
}

/// `stringData` is only a way of writing: its entries become entries of `data`.
fn take_plain_data(secret: &mut Value) {
    let plain = secret.as_object_mut().and_then(|fields| fields.remove("stringData"));
    let Some(Value::Object(plain)) = plain else { return };
    if plain.is_empty() {
        return;
    }
    if let Some(data) = fill::map(secret, "data") {
        for (key, value) in plain {
            let bytes = value.as_str().unwrap_or_default();
            data.insert(key, STANDARD.encode(bytes).into());
        }
    }
}

/// Whether what is frozen is as it was.
type Same = fn(&At<'_>, &At<'_>) -> bool;

/// Without entries is not the same as not there (`reflect.DeepEqual`).
fn is_as_given(now: &At<'_>, then: &At<'_>) -> bool {
    now.is_set() == then.is_set() && now.same(then)
}

fn check_frozen(new: &Value, old: &Value, data: &[(&str, Same)], errors: &mut Errors) {
    if old.get("immutable") != Some(&Value::Bool(true)) {
        return;
    }
    let (new, old) = (At::root(new), At::root(old));
    if !new.get("immutable").is_true() {
        errors.forbidden(&new.get("immutable"), FROZEN);
    }
    for (field, is_same) in data {
        let (now, then) = (new.get(field), old.get(field));
        if !is_same(&now, &then) {
            errors.forbidden(&now, FROZEN);
        }
    }
}

/// How many bytes a base64 text stands for.
fn decoded(text: &str) -> usize {
    (text.len() - text.bytes().filter(|byte| *byte == b'=').count()) * 3 / 4
}

fn check_map(map: &At<'_>, errors: &mut Errors) {
    let (data, binary) = (map.get("data"), map.get("binaryData"));
    let mut size = 0;
    for (key, entry) in data.entries() {
        for message in text::config_key(key) {
            errors.invalid_as(&entry, key, message);
        }
        if has(&binary, key) {
            errors.invalid_as(&entry, key, "duplicate of key present in binaryData");
        }
        size += entry.text().len();
    }
    for (key, entry) in binary.entries() {
        for message in text::config_key(key) {
            errors.invalid_as(&entry, key, message);
        }
        size += decoded(entry.text());
    }
    if size > LIMIT {
        errors.push(FieldError::too_long("[]", LIMIT));
    }
}

fn check_secret(secret: &At<'_>, errors: &mut Errors) {
    let data = secret.get("data");
    let mut size = 0;
    for (key, entry) in data.entries() {
        for message in text::config_key(key) {
            errors.invalid_as(&entry, key, message);
        }
        size += decoded(entry.text());
    }
    if size > LIMIT {
        errors.push(FieldError::too_long("data", LIMIT));
    }
    check_type(secret, &data, errors);
}

/// What a type promises to hold.
fn check_type(secret: &At<'_>, data: &At<'_>, errors: &mut Errors) {
    let mut need = |key: &str| {
        if !has(data, key) {
            errors.required(&data.entry(key), "");
        }
    };
    match secret.get("type").text() {
        "kubernetes.io/service-account-token" => {
            let account =
                secret.dig(&["metadata", "annotations"]).entry("kubernetes.io/service-account.name");
            errors.need(&account);
        }
        "kubernetes.io/dockercfg" => check_docker(data, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => check_docker(data, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" if !has(data, "username") && !has(data, "password") => {
            need("username");
            need("password");
        }
        "kubernetes.io/ssh-auth" => {
            errors.need(&data.entry("ssh-privatekey"));
        }
        "kubernetes.io/tls" => {
            need("tls.crt");
            need("tls.key");
        }
        _ => {}
    }
}

/// Whether data have a key, whatever stands there: bytes that are none count.
fn has(data: &At<'_>, key: &str) -> bool {
    data.value.get(key).is_some()
}

fn check_docker(data: &At<'_>, key: &str, errors: &mut Errors) {
    let entry = &data.entry(key);
    if !has(data, key) {
        errors.required(entry, "");
        return;
    }
    let bytes = STANDARD.decode(entry.text()).unwrap_or_default();
    let why = match json::decode(&bytes).map(|parsed| parsed.value) {
        Ok(Value::Object(_) | Value::Null) => None,
        Ok(other) => Some(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json::type_name(&other)
        )),
        Err(why) => Some(why),
    };
    if let Some(why) = why {
        errors.invalid_as(entry, "<secret contents redacted>", why);
    }
}
