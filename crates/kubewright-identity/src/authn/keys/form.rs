//! The forms in which keys are written down (DER), told apart by what they are made of and not by their names in PEM, as
//! Kubernetes does (`k8s.io/client-go/util/keyutil/key.go`).

use ring::rand::SystemRandom;
use ring::rsa::KeyPair as RsaKeyPair;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
};

use super::KeyError;
use kubewright_serve::der::{self, BIT_STRING, INTEGER, NULL, OCTET_STRING, SEQUENCE, element};

/// The object identifier 1.2.840.10045.2.1, `ecPublicKey`.
const EC: &[u8] = &[6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
/// The object identifier 1.2.840.10045.3.1.7, `prime256v1`.
const P256: &[u8] = &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
/// The object identifier 1.3.132.0.34, `secp384r1`.
const P384: &[u8] = &[6, 5, 0x2b, 0x81, 4, 0, 0x22];
/// The object identifier 1.2.840.113549.1.1.1, `rsaEncryption`.
const RSA: &[u8] = &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
/// The object identifier 1.3.101.112, `Ed25519`.
const ED25519: &[u8] = &[6, 3, 0x2b, 0x65, 0x70];

/// The tags of the optional members of a private key in SEC 1.
const PARAMETERS: u8 = 0xa0;

/// What a key calculates with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    P256,
    P384,
    Rsa,
    /// Of simulations alone.
    Ed25519,
}

impl Family {
    /// The family of an algorithm identifier: the object identifiers in it.
    fn of(algorithm: &[u8]) -> Option<Result<Self, KeyError>> {
        match der::fields(algorithm)?.as_slice() {
            [RSA, ..] => Some(Ok(Self::Rsa)),
            [EC, P256] => Some(Ok(Self::P256)),
            [EC, P384] => Some(Ok(Self::P384)),
            [EC, _] => Some(Err(KeyError::Curve)),
            _ => None,
        }
    }

    fn identifier(self) -> Vec<u8> {
        match self {
            Self::P256 => element(SEQUENCE, &[EC, P256]),
            Self::P384 => element(SEQUENCE, &[EC, P384]),
            Self::Rsa => element(SEQUENCE, &[RSA, &[NULL, 0]]),
            Self::Ed25519 => element(SEQUENCE, &[ED25519]),
        }
    }

    /// A public key as X.509 writes it (`SubjectPublicKeyInfo`).
    pub(super) fn public_key_info(self, material: &[u8]) -> Vec<u8> {
        element(SEQUENCE, &[&self.identifier(), &element(BIT_STRING, &[&[0], material])])
    }
}

/// A pair of keys.
pub(super) enum Pair {
    Ec(EcdsaKeyPair),
    Rsa(RsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// The private key in a piece of DER: PKCS #8, SEC 1 or PKCS #1. `None` for anything else.
pub(super) fn private(text: &[u8]) -> Option<Result<(Family, Pair), KeyError>> {
    let parts = der::fields(text)?;
    let tags: Vec<u8> = parts.iter().filter_map(|part| part.first().copied()).collect();
    match tags.as_slice() {
        [INTEGER, SEQUENCE, OCTET_STRING, ..] => {
            Some(Family::of(parts[1])?.and_then(|family| pkcs8(family, text)))
        }
        [INTEGER, OCTET_STRING, ..] => Some(sec1(text, &parts)),
        [INTEGER, INTEGER, INTEGER, ..] => Some(rsa(RsaKeyPair::from_der(text))),
        _ => None,
    }
}

/// The public key in a piece of DER, without the private one if that is there: its family, and a point of the curve or the
/// numbers of RSA. `None` for what holds no key.
pub(super) fn public(text: &[u8]) -> Option<Result<(Family, Vec<u8>), KeyError>> {
    let parts = der::fields(text)?;
    let tags: Vec<u8> = parts.iter().filter_map(|part| part.first().copied()).collect();
    match tags.as_slice() {
        [SEQUENCE, BIT_STRING] => {
            let material = der::content(parts[1], BIT_STRING)?.split_first()?.1;
            Some(Family::of(parts[0])?.map(|family| (family, material.to_vec())))
        }
        [SEQUENCE, SEQUENCE, BIT_STRING] => public(in_certificate(parts[0])?),
        [INTEGER, INTEGER] => Some(Ok((Family::Rsa, text.to_vec()))),
        _ => Some(private(text)?.map(|(family, pair)| (family, pair.public()))),
    }
}

impl Pair {
    pub(super) fn public(&self) -> Vec<u8> {
        match self {
            Self::Ec(pair) => ring::signature::KeyPair::public_key(pair).as_ref().to_vec(),
            Self::Rsa(pair) => ring::signature::KeyPair::public_key(pair).as_ref().to_vec(),
            Self::Ed25519(pair) => ring::signature::KeyPair::public_key(pair).as_ref().to_vec(),
        }
    }
}

/// The public key of a certificate: the seventh field, after an optional version, the serial number, the signature's
/// algorithm, the issuer, the validity and the subject (RFC 5280, 4.1).
fn in_certificate(to_be_signed: &[u8]) -> Option<&[u8]> {
    let fields = der::fields(to_be_signed)?;
    let version = usize::from(fields.first()?.first() == Some(&PARAMETERS));
    fields.get(version + 5).copied()
}

pub(super) fn pkcs8(family: Family, text: &[u8]) -> Result<(Family, Pair), KeyError> {
    let ecdsa = |algorithm| {
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, text, &SystemRandom::new());
        pair.map(|pair| (family, Pair::Ec(pair))).map_err(|_| KeyError::Damaged)
    };
    match family {
        Family::P256 => ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING),
        Family::P384 => ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING),
        Family::Rsa => rsa(RsaKeyPair::from_pkcs8(text)),
        Family::Ed25519 => {
            let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(text).map_err(|_| KeyError::Damaged)?;
            Ok((family, Pair::Ed25519(pair)))
        }
    }
}

/// The older form of a key on a curve (`EC PRIVATE KEY`), put into the newer one.
fn sec1(text: &[u8], parts: &[&[u8]]) -> Result<(Family, Pair), KeyError> {
    let parameters = parts.iter().find(|part| part.first() == Some(&PARAMETERS)).ok_or(KeyError::Curve)?;
    let family = match der::content(parameters, PARAMETERS) {
        Some(P256) => Family::P256,
        Some(P384) => Family::P384,
        _ => return Err(KeyError::Curve),
    };
    let version = [INTEGER, 1, 0];
    pkcs8(family, &element(SEQUENCE, &[&version, &family.identifier(), &element(OCTET_STRING, &[text])]))
}

fn rsa(read: Result<RsaKeyPair, ring::error::KeyRejected>) -> Result<(Family, Pair), KeyError> {
    let pair = read.map_err(|refused| match refused.to_string().as_str() {
        "TooSmall" | "TooLarge" => KeyError::RsaSize,
        _ => KeyError::Damaged,
    })?;
    Ok((Family::Rsa, Pair::Rsa(pair)))
}
