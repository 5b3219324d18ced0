//! The keys of service account tokens: JSON web tokens in compact form (RFC 7515, RFC 7518), signed by ECDSA or RSA.
//! Written on `ring`, which is here for TLS anyway: a JWT library would bring a second cryptography stack.

mod form;
mod private;
mod public;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

pub use private::TokenKey;
pub use public::{Jwk, PublicKey};

/// Why there is no key, or no signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The machine gives no entropy.
    #[error("the machine gives no entropy")]
    Entropy,
    /// A text without a private key (`k8s.io/client-go/util/keyutil`, `ParsePrivateKeyPEM`).
    #[error("data does not contain a valid RSA or ECDSA private key")]
    NoPrivateKey,
    /// A text without a key of any form (`ParsePublicKeysPEM`).
    #[error("data does not contain any valid RSA or ECDSA public keys")]
    NoPublicKey,
    /// A curve that nothing here can calculate on.
    #[error("ECDSA keys must be of the curve P-256 or P-384; P-521 and others are not supported")]
    Curve,
    /// An RSA key of a size that is not supported.
    #[error("RSA keys must have 2048 to 8192 bits to verify and 2048 to 4096 bits to sign")]
    RsaSize,
    /// A private key in which the public half is missing.
    #[error("the private key is damaged, or lacks its public key")]
    Damaged,
}

/// The header of a token, as far as it says which key to take.
#[derive(Deserialize)]
pub(super) struct Header {
    pub(super) alg: String,
    #[serde(default)]
    pub(super) kid: String,
}

fn encode(part: &impl Serialize) -> Option<String> {
    serde_json::to_vec(part).map(|bytes| URL_SAFE_NO_PAD.encode(bytes)).ok()
}

#[cfg(test)]
mod tests;
