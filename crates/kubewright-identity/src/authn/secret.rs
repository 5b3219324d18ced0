//! Tokens that are told to the server at start: who shows one is its user.

use ring::digest::{SHA256, digest};
use ring::error::Unspecified;
use ring::rand::{SecureRandom, SystemRandom};
use subtle::ConstantTimeEq;

use super::user::User;

/// A token to be handed to somebody; it shows itself to nobody else.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// This text.
    pub fn of(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// 32 bytes of the machine's entropy in 64 hexadecimal digits. Not the World's dice: what a seed decides, others
    /// can foresee.
    ///
    /// # Errors
    /// When the machine gives no entropy.
    pub fn random() -> Result<Self, Unspecified> {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The token itself, for the one who is to use it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The known tokens, by digest alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct StaticTokens(Vec<([u8; 32], User)>);

impl StaticTokens {
    pub(super) fn add(&mut self, secret: &Secret, user: User) {
        self.0.push((fingerprint(secret.reveal()), user));
    }

    /// Whose token this is. Every known token is compared, each in constant time.
    pub(super) fn find(&self, token: &str) -> Option<&User> {
        let shown = fingerprint(token);
        self.0.iter().fold(None, |found, (known, user)| {
            let same: bool = known.ct_eq(&shown).into();
            if same { Some(user) } else { found }
        })
    }
}

/// The digest of a token, by which it is known.
pub(super) fn fingerprint(token: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_only_as_a_whole() {
        let mut tokens = StaticTokens::default();
        tokens.add(&Secret::of("abc"), User::new("admin", ["system:masters"]));
        tokens.add(&Secret::of("abd"), User::new("other", ["x"]));
        assert_eq!(tokens.find("abc").unwrap().name, "admin");
        assert_eq!(tokens.find("abd").unwrap().name, "other");
        for wrong in ["", "ab", "abcd", "ABC"] {
            assert_eq!(tokens.find(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn secrets_do_not_show_themselves() {
        let secret = Secret::of("hunter2");
        let mut tokens = StaticTokens::default();
        tokens.add(&secret, User::new("admin", ["g"]));
        assert!(!format!("{secret:?} {tokens:?}").contains("hunter2"));
        let (one, other) = (Secret::random().unwrap(), Secret::random().unwrap());
        assert_eq!(one.reveal().len(), 64);
        assert_ne!(one.reveal(), other.reveal());
    }
}
