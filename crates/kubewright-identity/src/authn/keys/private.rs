//! The key that signs.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kubewright_world::Simulation;
use pem::Pem;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256};
use serde::Serialize;

use super::form::{self, Family, Pair};
use super::{KeyError, PublicKey, encode};

/// What a private key is called in PEM.
const PRIVATE_KEY: &str = "PRIVATE KEY";

/// A key that signs tokens: ES256, ES384 or RS256, as the key is. One that is made here comes from the machine's entropy
/// and not from the World's dice: who knows a seed must not be able to sign tokens. Only a simulation's is
/// [its seed's](Self::of_simulation).
pub struct TokenKey {
    pair: Pair,
    public: PublicKey,
    random: SystemRandom,
}

impl TokenKey {
    /// A new key (P-256).
    ///
    /// # Errors
    /// When the machine gives no entropy.
    pub fn generate() -> Result<Self, KeyError> {
        Self::of_pem(&Self::generate_pem()?)
    }

    /// The key of a simulation, which its seed decides, and so are its tokens. They say EdDSA, which no kube-apiserver
    /// does: a signature of ECDSA takes entropy.
    ///
    /// # Errors
    /// When there is no such key, which no seed can bring about.
    pub fn of_simulation(simulation: &Simulation) -> Result<Self, KeyError> {
        Self::of(form::pkcs8(Family::Ed25519, &simulation.key())?)
    }

    /// A new key in PKCS #8, as a text to be kept.
    ///
    /// # Errors
    /// When the machine gives no entropy.
    pub fn generate_pem() -> Result<String, KeyError> {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map_err(|_| KeyError::Entropy)?;
        Ok(pem::encode(&Pem::new(PRIVATE_KEY, document.as_ref())))
    }

    /// The first private key in a text, such as that of `--service-account-signing-key-file`: in PKCS #8, SEC 1 or PKCS #1.
    ///
    /// # Errors
    /// When there is none, or it is of a curve or a size that is not supported.
    pub fn of_pem(text: &str) -> Result<Self, KeyError> {
        let blocks = pem::parse_many(text).map_err(|_| KeyError::NoPrivateKey)?;
        let found = blocks.iter().find_map(|block| form::private(block.contents()));
        Self::of(found.ok_or(KeyError::NoPrivateKey)??)
    }

    fn of((family, pair): (Family, Pair)) -> Result<Self, KeyError> {
        let public = PublicKey::new(family, pair.public())?;
        Ok(Self { pair, public, random: SystemRandom::new() })
    }

    /// The key that verifies what this one signs.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// A token with these claims.
    pub fn sign(&self, claims: &impl Serialize) -> Result<String, KeyError> {
        self.sign_under(self.public.header(), claims)
    }

    fn sign_under(&self, header: &str, claims: &impl Serialize) -> Result<String, KeyError> {
        let claims = encode(claims).ok_or(KeyError::Damaged)?;
        let mut token = format!("{header}.{claims}");
        let signature = match &self.pair {
            Pair::Ec(pair) => {
                let signature = pair.sign(&self.random, token.as_bytes());
                signature.map_err(|_| KeyError::Entropy)?.as_ref().to_vec()
            }
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &self.random, token.as_bytes(), &mut signature)
                    .map_err(|_| KeyError::Entropy)?;
                signature
            }
            Pair::Ed25519(pair) => pair.sign(token.as_bytes()).as_ref().to_vec(),
        };
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(token)
    }
}

#[cfg(test)]
impl TokenKey {
    /// A token with another header.
    pub(crate) fn sign_as(&self, header: &str, claims: &impl Serialize) -> String {
        self.sign_under(&URL_SAFE_NO_PAD.encode(header), claims).unwrap()
    }
}

impl std::fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenKey(..)")
    }
}
