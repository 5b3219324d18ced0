use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// What `openssl ecparam`, `genrsa` and `pkcs8` write, all of the same three pairs.
const P256_SEC1: &str = include_str!("fixtures/p256.sec1.pem");
const P256_PKCS8: &str = include_str!("fixtures/p256.pkcs8.pem");
const P256_CERTIFICATE: &str = include_str!("fixtures/p256.crt");
const P384_SEC1: &str = include_str!("fixtures/p384.sec1.pem");
const P521_SEC1: &str = include_str!("fixtures/p521.sec1.pem");
const RSA_PKCS1: &str = include_str!("fixtures/rsa.pkcs1.pem");
const RSA_PKCS8: &str = include_str!("fixtures/rsa.pkcs8.pem");
const RSA_PUBLIC: &str = include_str!("fixtures/rsa.public.pem");
const RSA_PUBLIC_PKCS1: &str = include_str!("fixtures/rsa.public.pkcs1.pem");
const RSA_1024: &str = include_str!("fixtures/rsa1024.pem");

/// Their ids: `openssl pkey -pubout -outform DER | openssl dgst -sha256 -binary | basenc --base64url`.
const P256: &str = "08XytfDyBafVLofFbFNjY7zY-WkrTQyQh7xPzK2rmd0";
const P384: &str = "p428izRcpHSPcHW6m5qcAyjiho08gOO3qAAWwKvvwrU";
const RSA: &str = "pGbLsEKQVXSVlk7pULpW8mHCFLdA5Uy1CXvxnEKz2X0";

fn verified(key: &PublicKey, token: &str) -> bool {
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let header: Header =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(signed.split_once('.').unwrap().0).unwrap()).unwrap();
    key.verify(&header.alg, signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap())
}

#[test]
fn each_form_of_a_private_key_signs_what_each_form_of_its_public_key_verifies() {
    for (private, public, id, algorithm) in [
        (&[P256_SEC1, P256_PKCS8][..], &[P256_SEC1, P256_PKCS8, P256_CERTIFICATE][..], P256, "ES256"),
        (&[P384_SEC1], &[P384_SEC1], P384, "ES384"),
        (&[RSA_PKCS1, RSA_PKCS8], &[RSA_PKCS1, RSA_PKCS8, RSA_PUBLIC, RSA_PUBLIC_PKCS1], RSA, "RS256"),
    ] {
        for text in private {
            let key = TokenKey::of_pem(text).unwrap();
            assert_eq!(key.public().id(), id);
            let token = key.sign(&json!({"sub": "a"})).unwrap();
            let header = URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap()).unwrap();
            assert_eq!(
                serde_json::from_slice::<Value>(&header).unwrap(),
                json!({"alg": algorithm, "kid": id})
            );
            for text in public {
                let keys = PublicKey::all_of_pem(text).unwrap();
                assert_eq!(keys.len(), 1, "{text}");
                assert_eq!(keys[0].id(), id);
                assert!(verified(&keys[0], &token), "{text}");
            }
            assert!(!verified(TokenKey::generate().unwrap().public(), &token), "another key");
        }
    }
}

#[test]
fn a_file_may_hold_many_keys_and_other_things() {
    let text = format!("a comment\n{P256_CERTIFICATE}{RSA_PUBLIC}\n{P384_SEC1}");
    let ids: Vec<String> =
        PublicKey::all_of_pem(&text).unwrap().iter().map(|key| key.id().to_owned()).collect();
    assert_eq!(ids, [P256, RSA, P384]);
}

#[test]
fn what_cannot_be_used_says_why() {
    let private = |text: &str| TokenKey::of_pem(text).unwrap_err().to_string();
    let public = |text: &str| PublicKey::all_of_pem(text).unwrap_err().to_string();
    for text in ["", "no PEM", "-----BEGIN X-----\n-----END X-----\n"] {
        assert_eq!(private(text), "data does not contain a valid RSA or ECDSA private key");
        assert_eq!(public(text), "data does not contain any valid RSA or ECDSA public keys");
    }
    assert_eq!(private(P256_CERTIFICATE), "data does not contain a valid RSA or ECDSA private key");
    let curve = "ECDSA keys must be of the curve P-256 or P-384; P-521 and others are not supported";
    assert_eq!((private(P521_SEC1), public(P521_SEC1)), (curve.to_owned(), curve.to_owned()));
    let size = "RSA keys must have 2048 to 8192 bits to verify and 2048 to 4096 bits to sign";
    assert_eq!((private(RSA_1024), public(RSA_1024)), (size.to_owned(), size.to_owned()));
}

#[test]
fn keys_are_told_as_kubernetes_tells_them() {
    let told = |text: &str| serde_json::to_string(&PublicKey::all_of_pem(text).unwrap()[0].jwk()).unwrap();
    let ec = told(P256_CERTIFICATE);
    let start = format!(r#"{{"use":"sig","kty":"EC","kid":"{P256}","crv":"P-256","alg":"ES256","x":""#);
    assert!(ec.starts_with(&start), "{ec}");
    let rsa = told(RSA_PUBLIC);
    assert!(
        rsa.starts_with(&format!(r#"{{"use":"sig","kty":"RSA","kid":"{RSA}","alg":"RS256","n":""#)),
        "{rsa}"
    );
    assert!(rsa.ends_with(r#"","e":"AQAB"}"#), "{rsa}");
    let ec: Value = serde_json::from_str(&ec).unwrap();
    let rsa: Value = serde_json::from_str(&rsa).unwrap();
    for (member, bytes) in [(&ec["x"], 32), (&ec["y"], 32), (&rsa["n"], 256)] {
        assert_eq!(URL_SAFE_NO_PAD.decode(member.as_str().unwrap()).unwrap().len(), bytes);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0..300_usize) {
        let block = pem::encode(&pem::Pem::new("PRIVATE KEY", bytes));
        prop_assert!(TokenKey::of_pem(&block).is_err());
        prop_assert!(PublicKey::all_of_pem(&block).is_err());
        for text in [P256_PKCS8, RSA_PKCS1, P384_SEC1, P256_CERTIFICATE] {
            let mut bytes = pem::parse(text).unwrap().into_contents();
            bytes.truncate(cut);
            let _ = TokenKey::of_pem(&pem::encode(&pem::Pem::new("X", bytes.clone())));
            let _ = PublicKey::all_of_pem(&pem::encode(&pem::Pem::new("X", bytes)));
        }
    }
}
