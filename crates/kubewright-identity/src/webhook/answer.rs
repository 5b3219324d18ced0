//! What the answer of a webhook means before its content is looked at (`k8s.io/client-go/rest`, `transformResponse`).

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use serde_json::Value;

use super::client::Failure;

/// The most of an unstructured answer that is quoted.
const MAX_QUOTED: usize = 2048;

/// The bytes of a good answer.
///
/// # Errors
/// What an answer that is none says, in client-go's words.
pub(super) fn content(response: Response<Bytes>) -> Result<Bytes, Failure> {
    let (parts, body) = response.into_parts();
    let given = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if !(200..=206).contains(&parts.status.as_u16()) {
        return Err(refusal(parts.status, given, &body));
    }
    if body.is_empty() {
        return Err(Failure::Call(format!(
            "0-length response with status code: {} and content type: {}",
            parts.status.as_u16(),
            given.unwrap_or("application/json")
        )));
    }
    Ok(body)
}

/// A refusal: the message of a Status, or the words that client-go has for the code
/// (`k8s.io/apimachinery/pkg/api/errors`, `NewGenericServerResponse`).
fn refusal(code: StatusCode, media_type: Option<&str>, body: &Bytes) -> Failure {
    if let Ok(status) = serde_json::from_slice::<Value>(body)
        && status["kind"] == "Status"
        && status["status"] == "Failure"
    {
        return Failure::Call(status["message"].as_str().unwrap_or_default().to_owned());
    }
    let textual =
        media_type.is_none_or(|media_type| media_type.is_empty() || media_type.starts_with("text/"));
    let quoted = String::from_utf8_lossy(&body[..body.len().min(MAX_QUOTED)]);
    let said = if textual { quoted.trim() } else { "unknown" };
    let code = code.as_u16();
    let kind = if matches!(code, 429 | 500 | 504) { Failure::Later } else { Failure::Call };
    kind(match code {
        409 => "the server reported a conflict".to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 | 415 => said.to_owned(),
        406 if said.is_empty() || said == "unknown" => {
            "the server was unable to respond with a content type that the client supports".to_owned()
        }
        406 => said.to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        500.. => format!("an error on the server ({said:?}) has prevented the request from succeeding"),
        _ => format!("the server responded with the status code {code} but did not return more information"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, media_type: &str, body: &'static str) -> Result<Bytes, String> {
        let mut response = Response::builder().status(code);
        if !media_type.is_empty() {
            response = response.header(CONTENT_TYPE, media_type);
        }
        content(response.body(Bytes::from_static(body.as_bytes())).expect("a good response"))
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn the_body_of_a_success_is_looked_at_whatever_it_is_called() {
        assert_eq!(answer(200, "application/json; charset=utf-8", "{}"), Ok("{}".into()));
        assert_eq!(answer(200, "", "{}"), Ok("{}".into()));
        assert_eq!(answer(200, "text/html", "{}"), Ok("{}".into()));
        assert_eq!(
            answer(200, "", ""),
            Err("0-length response with status code: 200 and content type: application/json".into())
        );
    }

    #[test]
    fn a_refusal_is_told_in_client_gos_words() {
        assert_eq!(
            answer(400, "", "no"),
            Err("the server rejected our request for an unknown reason".into())
        );
        assert_eq!(
            answer(500, "text/plain", "boom\n"),
            Err(r#"an error on the server ("boom") has prevented the request from succeeding"#.into())
        );
        assert_eq!(
            answer(500, "application/json", "{}"),
            Err(r#"an error on the server ("unknown") has prevented the request from succeeding"#.into())
        );
        assert_eq!(
            answer(302, "", ""),
            Err("the server responded with the status code 302 but did not return more information".into())
        );
        let status =
            r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"go away","code":403}"#;
        assert_eq!(answer(403, "application/json", status), Err("go away".into()));
    }
}
