use serde_json::{Value, json};

use super::*;
use crate::authn::service_account::{Bound, Reference};

/// What envtest writes: `sa-signer.key` in PKCS #8, and `sa-signer.crt`, a certificate.
const SIGNER: &str = include_str!("../keys/fixtures/p256.pkcs8.pem");
const SIGNER_CERTIFICATE: &str = include_str!("../keys/fixtures/p256.crt");
const ISSUER_OF_ENVTEST: &str = "https://127.0.0.1:6443/";

fn claims(issuer: &str, audience: &str) -> Claims {
    let reference = || Reference { name: "bot".to_owned(), uid: "1".to_owned() };
    Claims {
        aud: vec![audience.to_owned()],
        exp: 1,
        iat: 0,
        iss: issuer.to_owned(),
        jti: "j".to_owned(),
        kubernetes: Bound {
            namespace: "ns".to_owned(),
            node: None,
            pod: None,
            secret: None,
            serviceaccount: reference(),
            warnafter: None,
        },
        nbf: 0,
        sub: "system:serviceaccount:ns:bot".to_owned(),
    }
}

fn keys(text: &str) -> Vec<PublicKey> {
    PublicKey::all_of_pem(text).unwrap()
}

/// The server that envtest starts.
fn envtest() -> ServiceAccounts {
    ServiceAccounts::new(TokenKey::of_pem(SIGNER).unwrap())
        .verified_by(keys(SIGNER_CERTIFICATE))
        .issuers(vec![ISSUER_OF_ENVTEST.to_owned()])
        .unwrap()
}

fn token(accounts: &ServiceAccounts) -> String {
    accounts.sign(&claims(accounts.issuer(), accounts.issuer())).unwrap()
}

fn check(accounts: &ServiceAccounts, token: &str) -> Result<Claims, TokenError> {
    accounts.verify(token, accounts.own_audiences()).map(|(verified, _)| match &*verified {
        Verified::Bound(claims) => (**claims).clone(),
        Verified::Legacy(claims) => panic!("the token of a Secret: {claims:?}"),
    })
}

#[test]
fn a_token_of_the_signing_key_is_verified_by_its_certificate() {
    let accounts = envtest();
    assert_eq!(check(&accounts, &token(&accounts)), Ok(claims(ISSUER_OF_ENVTEST, ISSUER_OF_ENVTEST)));
}

#[test]
fn a_token_that_was_looked_at_before_is_not_taken_for_another() {
    let accounts = envtest();
    let good = token(&accounts);
    for _ in 0..2 {
        assert!(check(&accounts, &good).is_ok());
        assert!(check(&accounts, &format!("{}AAAA", &good[..good.len() - 4])).is_err());
        assert!(matches!(accounts.verify(&good, &["other".to_owned()]), Err(TokenError::Audience { .. })));
    }
}

#[test]
fn tokens_of_an_old_key_are_good_as_long_as_it_is_listed() {
    let issued = token(&envtest());
    let rotated = |accepted: Vec<PublicKey>| {
        let key = TokenKey::generate().unwrap();
        let accepted = accepted.into_iter().chain([key.public().clone()]).collect();
        let issuers = vec![ISSUER_OF_ENVTEST.to_owned()];
        ServiceAccounts::new(key).verified_by(accepted).issuers(issuers).unwrap()
    };
    let both = rotated(keys(SIGNER_CERTIFICATE));
    assert!(check(&both, &issued).is_ok());
    assert!(check(&both, &token(&both)).is_ok());
    assert_eq!(check(&rotated(Vec::new()), &issued), Err(TokenError::NoKey));
    let elsewhere = ServiceAccounts::new(TokenKey::generate().unwrap())
        .verified_by(keys(SIGNER_CERTIFICATE))
        .issuers(vec![ISSUER_OF_ENVTEST.to_owned()])
        .unwrap();
    assert_eq!(check(&elsewhere, &token(&elsewhere)), Err(TokenError::NoKey), "its own key is not listed");
}

#[test]
fn the_first_issuer_issues_and_all_are_accepted() {
    let issuers = ["https://new", "https://old"].map(str::to_owned).to_vec();
    let accounts = envtest().issuers(issuers.clone()).unwrap();
    assert_eq!(accounts.own_audiences(), issuers, "all issuers are audiences");
    assert_eq!(check(&accounts, &token(&accounts)).unwrap().iss, "https://new");
    let old = accounts.sign(&claims("https://old", "https://old")).unwrap();
    assert_eq!(check(&accounts, &old).unwrap().iss, "https://old");
    assert_eq!(check(&accounts, &token(&envtest())), Err(TokenError::Unknown), "another issuer");
}

#[test]
fn a_token_is_for_the_audiences_of_the_server() {
    let accounts = envtest().audiences(vec!["api".to_owned(), "vault".to_owned()]);
    let of = |audience: &str| accounts.sign(&claims(ISSUER_OF_ENVTEST, audience)).unwrap();
    assert!(check(&accounts, &of("vault")).is_ok());
    assert!(matches!(check(&accounts, &of("other")), Err(TokenError::Audience { .. })));
    let (_, audiences) = accounts.verify(&of("other"), &["other".to_owned()]).unwrap();
    assert_eq!(audiences, ["other"]);
}

#[test]
fn what_was_changed_or_signed_otherwise_is_refused() {
    let accounts = envtest();
    let good = token(&accounts);
    let parts: Vec<&str> = good.split('.').collect();
    let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let kid = accounts.key.public().id();
    let none = encode(json!({"alg": "none", "kid": kid}));
    let other = encode(json!({"alg": "ES384", "kid": kid}));
    let nameless = encode(json!({"alg": "ES256"}));
    let changed = URL_SAFE_NO_PAD
        .encode(String::from_utf8(URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap().replace("bot", "root"));
    for (forged, why) in [
        (format!("{}.{changed}.{}", parts[0], parts[2]), TokenError::Signature),
        (format!("{none}.{}.", parts[1]), TokenError::Signature),
        (format!("{none}.{}.{}", parts[1], parts[2]), TokenError::Signature),
        (format!("{other}.{}.{}", parts[1], parts[2]), TokenError::Signature),
        (format!("{nameless}.{}.{}", parts[1], parts[2]), TokenError::Signature),
        (format!("{}.{}", parts[0], parts[1]), TokenError::Unknown),
        (format!("{good}.x"), TokenError::Unknown),
        ("...".to_owned(), TokenError::Unknown),
        (String::new(), TokenError::Unknown),
    ] {
        assert_eq!(check(&accounts, &forged), Err(why), "{forged}");
    }
}

/// go-jose and others leave the key's id out; then each key is tried.
#[test]
fn a_token_that_names_no_key_is_tried_with_each() {
    let accounts = envtest();
    let plain =
        accounts.key.sign_as(r#"{"typ":"JWT","alg":"ES256"}"#, &claims(ISSUER_OF_ENVTEST, ISSUER_OF_ENVTEST));
    assert!(check(&accounts, &plain).is_ok());
}

#[test]
fn settings_that_make_no_sense_are_refused_in_the_words_of_kube_apiserver() {
    let issuers = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        envtest().issuers(names).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(issuers(&[]), Err("service-account-issuer is a required flag".to_owned()));
    assert_eq!(issuers(&[""]), Err("service-account-issuer should not be an empty string".to_owned()));
    assert_eq!(issuers(&["a", "a"]), Err(r#"service-account-issuer "a" is already specified"#.to_owned()));
    assert_eq!(
        issuers(&["https://a:b"]),
        Err(r#"service-account-issuer "https://a:b" contained a ':' but was not a valid URL: parse "https://a:b": invalid port ":b" after host"#.to_owned())
    );
    assert_eq!(
        issuers(&["1:a"]),
        Err(r#"service-account-issuer "1:a" contained a ':' but was not a valid URL: parse "1:a": first path segment in URL cannot contain colon"#.to_owned())
    );
    for good in [
        "api",
        "/certs/sa.crt",
        "https://localhost",
        "https://[::1]:6443/",
        "kubernetes/serviceaccount",
        "a:b",
    ] {
        assert_eq!(issuers(&[good]), Ok(()), "{good}");
    }
    for (seconds, good) in [(3599, false), (3600, true), (1 << 32, true), ((1 << 32) + 1, false)] {
        assert_eq!(envtest().max_expiration(Duration::from_secs(seconds)).is_ok(), good, "{seconds}");
    }
    assert!(envtest().jwks_uri("http://a").is_err());
}

/// As kube-apiserver v1.36 answered, but for its address and key.
#[test]
fn others_are_told_who_issues_and_with_which_keys() {
    let accounts = envtest();
    assert_eq!(
        accounts.configuration("127.0.0.1:6443").unwrap(),
        r#"{"issuer":"https://127.0.0.1:6443/","jwks_uri":"https://127.0.0.1:6443/openid/v1/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}"#
    );
    let elsewhere = accounts.jwks_uri("https://keys.example.com").unwrap();
    assert!(elsewhere.configuration("x").unwrap().contains(r#""jwks_uri":"https://keys.example.com","#));
    let set: Value = serde_json::from_str(&elsewhere.key_set()).unwrap();
    assert_eq!(set["keys"][0]["kid"], elsewhere.key.public().id());
    for issuer in ["api", "http://a", "https://a?x=y", "https://a#b"] {
        let hidden = envtest().issuers(vec![issuer.to_owned()]).unwrap();
        assert_eq!(hidden.configuration("x"), None, "{issuer}");
    }
}
