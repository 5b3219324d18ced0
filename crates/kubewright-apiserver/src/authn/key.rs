//! The key that signs service account tokens: JSON web tokens in compact form (RFC 7515) with ES256 (RFC 7518).
//! Written on `ring`, which is here for TLS anyway: a JWT library would bring a second cryptography stack for
//! one algorithm.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pem::Pem;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What a private key is called in PEM.
const PRIVATE_KEY: &str = "PRIVATE KEY";

/// A key pair for the life of one server, or of its data. It comes from the machine's entropy and not from the World's dice: who knows a
/// seed must not be able to sign tokens.
pub struct TokenKey {
    pair: EcdsaKeyPair,
    /// The encoded header of all tokens of this key.
    header: String,
    random: SystemRandom,
}

/// The machine could not make a key, or could not sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key for service account tokens cannot be made or used")]
pub struct KeyError;

impl TokenKey {
    /// A new key.
    ///
    /// # Errors
    /// When the machine gives no entropy.
    pub fn generate() -> Result<Self, KeyError> {
        Self::of_pem(&Self::generate_pem()?)
    }

    /// A new key in PKCS #8, as a text to be kept.
    ///
    /// # Errors
    /// When the machine gives no entropy.
    pub fn generate_pem() -> Result<String, KeyError> {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map_err(|_| KeyError)?;
        Ok(pem::encode(&Pem::new(PRIVATE_KEY, document.as_ref())))
    }

    /// The key in a text of [`Self::generate_pem`].
    ///
    /// # Errors
    /// When it is no such text.
    pub fn of_pem(text: &str) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let document = pem::parse(text).map_err(|_| KeyError)?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.contents(), &random)
            .map_err(|_| KeyError)?;
        let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, pair.public_key().as_ref()));
        let header = encode(&json!({"alg": "ES256", "kid": id}))?;
        Ok(Self { pair, header, random })
    }

    /// A token with these claims.
    pub(crate) fn sign(&self, claims: &impl Serialize) -> Result<String, KeyError> {
        let mut token = format!("{}.{}", self.header, encode(claims)?);
        let signature = self.pair.sign(&self.random, token.as_bytes()).map_err(|_| KeyError)?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(token)
    }

    /// The claims of a token that this key has signed; `None` for every other text.
    pub(crate) fn verify<C: for<'de> Deserialize<'de>>(&self, token: &str) -> Option<C> {
        let (signed, signature) = token.rsplit_once('.')?;
        let claims = signed.strip_prefix(self.header.as_str())?.strip_prefix('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key().as_ref())
            .verify(signed.as_bytes(), &signature)
            .ok()?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }
}

impl std::fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenKey(..)")
    }
}

fn encode(part: &impl Serialize) -> Result<String, KeyError> {
    serde_json::to_vec(part).map(|bytes| URL_SAFE_NO_PAD.encode(bytes)).map_err(|_| KeyError)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn only_the_own_signature_over_the_own_text_is_taken() {
        let key = TokenKey::generate().unwrap();
        let claims = json!({"sub": "a"});
        let token = key.sign(&claims).unwrap();
        assert_eq!(key.verify::<Value>(&token), Some(claims));
        assert_eq!(TokenKey::generate().unwrap().verify::<Value>(&token), None, "another key");

        let parts: Vec<&str> = token.split('.').collect();
        let other = encode(&json!({"sub": "b"})).unwrap();
        let none = encode(&json!({"alg": "none"})).unwrap();
        for forged in [
            format!("{}.{other}.{}", parts[0], parts[2]),
            format!("{none}.{}.", parts[1]),
            format!("{none}.{}.{}", parts[1], parts[2]),
            format!("{}.{}", parts[0], parts[1]),
            format!("{token}.x"),
        ] {
            assert_eq!(key.verify::<Value>(&forged), None, "{forged}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_refused_without_a_panic(text in ".{0,80}", dots in "[a-zA-Z0-9_-]{0,9}\\.[a-zA-Z0-9_-]{0,9}\\.[a-zA-Z0-9_-]{0,9}") {
            let key = TokenKey::generate().unwrap();
            prop_assert_eq!(key.verify::<Value>(&text), None);
            prop_assert_eq!(key.verify::<Value>(&dots), None);
        }
    }
}
