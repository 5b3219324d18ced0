//! How a client is told how its command ended
//! (`k8s.io/cri-streaming/pkg/streaming/remotecommand`, `k8s.io/apiserver/pkg/util/proxy/streamtranslator.go`).

use serde_json::json;

/// In which form a client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Form {
    /// A Status, from the fifth version of the protocol on: what it says is of the fourth version inside it.
    Nested,
    /// A Status, in the fourth version of the protocol.
    Status,
    /// The text of a failure, and nothing of a success, before.
    Text,
}

/// What is told of a command that ended with this code, or whose code is not known; `None` when there is nothing to tell.
pub(super) fn of(ended: &Result<i32, String>, form: Form) -> Option<String> {
    let (reason, message) = match ended {
        Ok(0) => {
            return (form != Form::Text).then(|| json!({"metadata": {}, "status": "Success"}).to_string());
        }
        Ok(code) => (
            "NonZeroExitCode",
            format!("command terminated with non-zero exit code: command terminated with exit code {code}"),
        ),
        Err(why) => ("InternalError", format!("Internal error occurred: {why}")),
    };
    if form == Form::Text {
        return Some(message);
    }
    let mut status = json!({"metadata": {}, "status": "Failure", "reason": reason, "message": message});
    match ended {
        Ok(code) => {
            status["details"] = json!({"causes": [{"reason": "ExitCode", "message": code.to_string()}]});
        }
        Err(_) => status["code"] = 500.into(),
    }
    if form == Form::Nested && ended.is_err() {
        status["details"] = json!({"causes": [{"message": message}]});
        status["message"] = format!("Internal error occurred: {message}").into();
    }
    Some(status.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn status(ended: &Result<i32, String>, form: Form) -> Value {
        serde_json::from_str(&of(ended, form).expect("something is told")).expect("JSON")
    }

    #[test]
    fn a_status_has_the_exit_code_among_its_causes() {
        for form in [Form::Nested, Form::Status] {
            assert_eq!(
                status(&Ok(3), form),
                json!({
                    "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
                    "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
                    "message": "command terminated with non-zero exit code: command terminated with exit code 3"
                })
            );
            assert_eq!(status(&Ok(0), form)["status"], "Success");
        }
    }

    #[test]
    fn the_first_versions_tell_of_failures_only() {
        assert_eq!(of(&Ok(0), Form::Text), None);
        assert_eq!(of(&Err("no".to_owned()), Form::Text).as_deref(), Some("Internal error occurred: no"));
    }

    #[test]
    fn why_there_is_no_code_is_told_as_an_internal_error() {
        let told = |form| status(&Err("no".to_owned()), form)["message"].clone();
        assert_eq!(told(Form::Status), "Internal error occurred: no");
        assert_eq!(told(Form::Nested), "Internal error occurred: Internal error occurred: no");
    }
}
