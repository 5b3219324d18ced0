//! Keystone: logins, and application credentials.

use http::{HeaderValue, Method, StatusCode};
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Recorded, state::State};

pub(crate) fn answer(
    state: &mut State,
    url: &str,
    asked: &Recorded,
) -> (StatusCode, Value, Option<HeaderValue>) {
    let path: Vec<&str> = asked.path.iter().map(String::as_str).collect();
    match (&asked.method, path.as_slice()) {
        (&Method::POST, ["v3", "auth", "tokens"]) => log_in(state, url, &asked.body),
        (&Method::DELETE, ["v3", "auth", "tokens"]) => {
            let token = asked.headers.get("x-subject-token").and_then(|token| token.to_str().ok());
            state.tokens.remove(token.unwrap_or_default());
            (StatusCode::NO_CONTENT, Value::Null, None)
        }
        (&Method::POST, ["v3", "users", user, "application_credentials"]) => {
            let (id, secret) = (state.id(), state.id());
            state.credentials.insert(id.clone(), (secret.clone(), (*user).to_owned()));
            (StatusCode::CREATED, json!({"application_credential": {"id": id, "secret": secret}}), None)
        }
        (&Method::DELETE, ["v3", "users", _, "application_credentials", id]) => {
            let there = state.credentials.remove(*id).is_some();
            (if there { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND }, Value::Null, None)
        }
        _ => (StatusCode::NOT_FOUND, error(404, "Not Found", "The resource could not be found."), None),
    }
}

fn log_in(state: &mut State, url: &str, body: &Value) -> (StatusCode, Value, Option<HeaderValue>) {
    let identity = &body["auth"]["identity"];
    let project = match identity["methods"][0].as_str() {
        Some("password") => {
            let user = &identity["password"]["user"];
            let name = user["name"].as_str().unwrap_or_default();
            let good =
                state.passwords.get(name).is_some_and(|password| user["password"] == password.as_str());
            let scoped = body["auth"]["scope"]["project"]["name"] == name;
            (good && scoped).then(|| name.to_owned())
        }
        Some("application_credential") => {
            let credential = &identity["application_credential"];
            let id = credential["id"].as_str().unwrap_or_default();
            let Some((secret, project)) = state.credentials.get(id) else {
                let message = format!("Could not find Application Credential: {id}.");
                return (StatusCode::NOT_FOUND, error(404, "Not Found", &message), None);
            };
            (credential["secret"] == secret.as_str()).then(|| project.clone())
        }
        _ => None,
    };
    let Some(project) = project else { return (StatusCode::UNAUTHORIZED, unauthorized(), None) };
    state.logins += 1;
    let token = format!("gAAAAA{}", state.id());
    state.tokens.insert(token.clone(), (project.clone(), Instant::now() + state.token_life));
    let now = state.world.clock.now();
    let life = SignedDuration::try_from(state.token_life).expect("a short time");
    let catalog = json!([
        {"type": "identity", "endpoints": [{"interface": "public", "region": "RegionOne", "region_id": "RegionOne", "url": format!("{url}/v3")}]},
        {"type": "network", "endpoints": [
            {"interface": "admin", "region": "RegionOne", "region_id": "RegionOne", "url": "http://nowhere.test"},
            {"interface": "public", "region": "RegionOne", "region_id": "RegionOne", "url": url},
        ]},
    ]);
    let body = json!({"token": {
        "methods": identity["methods"], "issued_at": now.to_string(), "expires_at": (now + life).to_string(),
        "project": {"id": project, "name": project}, "user": {"id": project, "name": project}, "catalog": catalog,
    }});
    (StatusCode::CREATED, body, Some(HeaderValue::from_str(&token).expect("a header")))
}

/// The project that a request's token is for.
pub(crate) fn project(state: &State, asked: &Recorded) -> Option<String> {
    let token = asked.headers.get("x-auth-token")?.to_str().ok()?;
    let (project, end) = state.tokens.get(token)?;
    (Instant::now() < *end).then(|| project.clone())
}

pub(crate) fn unauthorized() -> Value {
    error(401, "Unauthorized", "The request you have made requires authentication.")
}

fn error(code: u16, title: &str, message: &str) -> Value {
    json!({"error": {"code": code, "title": title, "message": message}})
}
