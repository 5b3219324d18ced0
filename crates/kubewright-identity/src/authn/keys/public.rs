//! A key that verifies.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, UnparsedPublicKey, VerificationAlgorithm,
};
use serde::Serialize;
use serde_json::json;

use super::form::{self, Family};
use super::{KeyError, encode};
use kubewright_serve::der::{self, INTEGER};

/// A public key by which tokens are verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    family: Family,
    /// An uncompressed point of the curve (of Ed25519, 32 bytes), or `RSAPublicKey` (RFC 8017).
    material: Vec<u8>,
    id: String,
    header: String,
}

/// A key as `/openid/v1/jwks` tells it (RFC 7517), with its members in the order of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Jwk {
    r#use: &'static str,
    kty: &'static str,
    kid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    crv: Option<&'static str>,
    alg: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    y: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    e: Option<String>,
}

impl PublicKey {
    /// All keys in a text, such as that of `--service-account-key-file`: certificates, public keys, and private keys, of
    /// which the public half is taken. What is none of these is skipped (`k8s.io/client-go/util/keyutil`,
    /// `ParsePublicKeysPEM`).
    ///
    /// # Errors
    /// When there is no key, or one is of a curve or a size that is not supported.
    pub fn all_of_pem(text: &str) -> Result<Vec<Self>, KeyError> {
        let blocks = pem::parse_many(text).map_err(|_| KeyError::NoPublicKey)?;
        let found = blocks.iter().filter_map(|block| form::public(block.contents()));
        let keys: Vec<Self> = found
            .map(|found| found.and_then(|(family, material)| Self::new(family, material)))
            .collect::<Result<_, _>>()?;
        if keys.is_empty() { Err(KeyError::NoPublicKey) } else { Ok(keys) }
    }

    /// How tokens name the key: the digest of its `SubjectPublicKeyInfo`
    /// (`k8s.io/kubernetes/pkg/serviceaccount/jwt.go`, `keyIDFromPublicKey`).
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The encoded header of the tokens that this key's other half signs.
    pub(super) fn header(&self) -> &str {
        &self.header
    }

    pub(super) fn new(family: Family, material: Vec<u8>) -> Result<Self, KeyError> {
        if family == Family::Rsa {
            let (modulus, _) = numbers(&material).ok_or(KeyError::NoPublicKey)?;
            let bits = modulus.len() * 8 - modulus.first().map_or(0, |byte| byte.leading_zeros() as usize);
            if !(2048..=8192).contains(&bits) {
                return Err(KeyError::RsaSize);
            }
        }
        let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, &family.public_key_info(&material)));
        let header = encode(&json!({"alg": algorithm(family), "kid": id})).ok_or(KeyError::Damaged)?;
        Ok(Self { family, material, id, header })
    }

    /// The algorithm that the other half signs with.
    pub fn algorithm(&self) -> &'static str {
        algorithm(self.family)
    }

    /// Whether a header says nothing else than those of this key do.
    pub(crate) fn wrote(&self, header: &str) -> bool {
        self.header == header
    }

    /// Whether this key's other half has signed a text with an algorithm.
    pub fn verify(&self, algorithm: &str, signed: &[u8], signature: &[u8]) -> bool {
        let algorithm: &dyn VerificationAlgorithm = match (self.family, algorithm) {
            (Family::P256, "ES256") => &ECDSA_P256_SHA256_FIXED,
            (Family::P384, "ES384") => &ECDSA_P384_SHA384_FIXED,
            (Family::Ed25519, "EdDSA") => &ED25519,
            (Family::Rsa, "RS256") => &RSA_PKCS1_2048_8192_SHA256,
            (Family::Rsa, "RS384") => &RSA_PKCS1_2048_8192_SHA384,
            (Family::Rsa, "RS512") => &RSA_PKCS1_2048_8192_SHA512,
            _ => return false,
        };
        UnparsedPublicKey::new(algorithm, &self.material).verify(signed, signature).is_ok()
    }

    /// As others are told of it.
    #[must_use]
    pub fn jwk(&self) -> Jwk {
        let text = |bytes: &[u8]| Some(URL_SAFE_NO_PAD.encode(bytes));
        let none = Jwk {
            r#use: "sig",
            kty: "EC",
            kid: self.id.clone(),
            crv: None,
            alg: algorithm(self.family),
            x: None,
            y: None,
            n: None,
            e: None,
        };
        // A point is written as a 4 and its two coordinates.
        let point = self.material.get(1..).unwrap_or_default();
        let (x, y) = point.split_at(point.len() / 2);
        match self.family {
            Family::P256 => Jwk { crv: Some("P-256"), x: text(x), y: text(y), ..none },
            Family::P384 => Jwk { crv: Some("P-384"), x: text(x), y: text(y), ..none },
            Family::Rsa => {
                let (n, e) = numbers(&self.material).unwrap_or_default();
                Jwk { kty: "RSA", n: text(n), e: text(e), ..none }
            }
            // RFC 8037.
            Family::Ed25519 => Jwk { kty: "OKP", crv: Some("Ed25519"), x: text(&self.material), ..none },
        }
    }
}

/// The algorithm that a key of this family signs tokens with.
fn algorithm(family: Family) -> &'static str {
    match family {
        Family::P256 => "ES256",
        Family::P384 => "ES384",
        Family::Rsa => "RS256",
        Family::Ed25519 => "EdDSA",
    }
}

/// Modulus and exponent of an RSA key, without leading zeros.
fn numbers(material: &[u8]) -> Option<(&[u8], &[u8])> {
    match der::fields(material)?.as_slice() {
        [modulus, exponent] => Some((number(modulus)?, number(exponent)?)),
        _ => None,
    }
}

fn number(integer: &[u8]) -> Option<&[u8]> {
    let digits = der::content(integer, INTEGER)?;
    Some(&digits[digits.iter().take_while(|byte| **byte == 0).count()..])
}
