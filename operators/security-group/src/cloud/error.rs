//! What can go wrong with a cloud, and what that means.

use std::time::Duration;

use serde_json::Value;

/// The most of an answer that is quoted.
const MAX_QUOTED: usize = 300;

/// Why the cloud did not do what it was asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CloudError {
    /// It did not answer, or not in time. It may have done what it was asked.
    #[error("the cloud cannot be reached: {0}")]
    Unreachable(String),
    /// It asked to be left alone for a while (429, 503).
    #[error("the cloud is busy and asks to come back later")]
    Busy(Duration),
    /// The credentials are no good (any more).
    #[error("the cloud does not take the credentials: {0}")]
    Unauthorized(String),
    /// It refused.
    #[error("{message} ({kind}, {status})")]
    Refused {
        /// The status of the answer.
        status: u16,
        /// Neutron's name of the error.
        kind: String,
        /// Neutron's words.
        message: String,
    },
    /// An answer makes no sense.
    #[error("the cloud's answer makes no sense: {0}")]
    Nonsense(String),
}

impl CloudError {
    /// What an answer that is no success says.
    #[must_use]
    pub(super) fn refused(status: u16, body: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(body).unwrap_or_default();
        // Neutron's own errors, and those of the middleware in front of it and of Keystone.
        let (kind, message) = match (&value["NeutronError"], &value["error"]["message"]) {
            (Value::Object(error), _) => (text(error.get("type")), text(error.get("message"))),
            (Value::String(message), _) => (String::new(), message.clone()),
            (_, Value::String(message)) => (text(value["error"].get("title")), message.clone()),
            _ => (String::new(), String::from_utf8_lossy(body).into_owned()),
        };
        let kind = if kind.is_empty() { "HTTP".to_owned() } else { kind };
        let message = message.trim().chars().take(MAX_QUOTED).collect();
        Self::Refused { status, kind, message }
    }

    fn is(&self, wanted: u16) -> bool {
        matches!(self, Self::Refused { status, .. } if *status == wanted)
    }

    fn is_kind(&self, wanted: &str) -> bool {
        matches!(self, Self::Refused { kind, .. } if kind == wanted)
    }

    /// What it was about is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.is(404)
    }

    /// Somebody else has changed it meanwhile.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.is(412)
    }

    /// There is such a rule already.
    #[must_use]
    pub fn is_duplicate_rule(&self) -> bool {
        self.is_kind("SecurityGroupRuleExists")
    }

    /// The group is used by a port or a rule.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        self.is_kind("SecurityGroupInUse")
    }

    /// The project may not have more of it.
    #[must_use]
    pub fn is_over_quota(&self) -> bool {
        self.is_kind("OverQuota")
    }

    /// Whether the same may go well in a moment without anybody doing anything.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Busy(_) | Self::Nonsense(_) => true,
            Self::Unauthorized(_) => false,
            Self::Refused { status, .. } => *status >= 500 || *status == 412,
        }
    }

    /// One word for a condition's reason.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "CloudUnreachable",
            Self::Busy(_) => "CloudBusy",
            Self::Unauthorized(_) => "CredentialsRefused",
            Self::Nonsense(_) => "CloudAnswersNonsense",
            Self::Refused { .. } if self.is_over_quota() => "QuotaExceeded",
            Self::Refused { status: 403, .. } => "Forbidden",
            Self::Refused { .. } => "CloudRefuses",
        }
    }
}

fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neutrons_and_keystones_errors_are_read() {
        let body = br#"{"NeutronError": {"type": "SecurityGroupInUse", "message": "Security Group 1 in use.", "detail": ""}}"#;
        let error = CloudError::refused(409, body);
        assert!(error.is_in_use() && !error.is_not_found() && !error.is_passing());
        assert_eq!(error.to_string(), "Security Group 1 in use. (SecurityGroupInUse, 409)");
        let body =
            br#"{"error": {"code": 401, "title": "Unauthorized", "message": "The request requires authentication."}}"#;
        let told = CloudError::refused(401, body).to_string();
        assert_eq!(told, "The request requires authentication. (Unauthorized, 401)");
        assert_eq!(CloudError::refused(502, b"bad gateway\n").to_string(), "bad gateway (HTTP, 502)");
        let quota = br#"{"NeutronError": {"type": "OverQuota", "message": "Quota exceeded", "detail": ""}}"#;
        assert_eq!(CloudError::refused(409, quota).reason(), "QuotaExceeded");
    }
}
