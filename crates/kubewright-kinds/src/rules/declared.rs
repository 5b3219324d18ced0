//! Rules that Kubernetes declares by tags in its types (`+k8s:beta(since: "1.37")=+k8s:required`) and checks by itself from a version
//! on (`apiserver/pkg/registry/rest/validate.go`): what they find stands last, in the order of the fields in their types, once for each
//! field, and in their own words. What is found is the same.

use kubewright_meta::{FieldError, Problem};
use kubewright_spec::Version;
use serde_json::Value;

use super::printed;

/// A rule that is declared: a field, with `[*]` for each place in a list, and what may be wrong with it. In the order of the fields
/// in their types.
pub(crate) type Declared = (&'static str, Mistake);

/// What a declared rule finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// There is nothing.
    Required,
    /// It is no longer what it was.
    Immutable,
    /// An item of the list is there already; of which type they are.
    Duplicate(&'static str),
    /// It is in another form: of all that [`Mistake::Other`] finds this alone.
    Form,
    /// It is no good: too small, too long, too many, none of those that there are, in another form.
    Other,
}

const IMMUTABLE: &str = "field is immutable";

/// Puts what declared rules find of an object where these put it.
pub(super) fn put_last(
    version: Version,
    declared: &[Declared],
    object: &Value,
    errors: &mut Vec<FieldError>,
) {
    let mut found: Vec<(Place, FieldError)> = Vec::new();
    for (field, mistake) in declared {
        errors.retain(|error| {
            let Some(indexes) = is_of(error, *mistake).then(|| indexes(error, field, *mistake)).flatten()
            else {
                return true;
            };
            let told = described(error, *mistake, version, object);
            if !found.iter().any(|(_, known)| *known == told) {
                found.push((place(declared, field, &indexes), told));
            }
            false
        });
    }
    // Those of one place stay in their order.
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    errors.extend(found.into_iter().map(|(_, told)| told));
}

/// Leaves the first of those that are the same.
pub(super) fn keep_first_of_each(errors: &mut Vec<FieldError>) {
    let mut told: Vec<FieldError> = Vec::new();
    for error in std::mem::take(errors) {
        if !told.contains(&error) {
            told.push(error);
        }
    }
    *errors = told;
}

/// Where a walk through the object comes by: what is wrong with a list before its items, these by their number, and the fields of each
/// in the order of their type.
type Place = Vec<usize>;

/// The place of a field, in lists at these indexes. Of fields is known in which order the declared ones stand.
fn place(declared: &[Declared], field: &str, indexes: &[usize]) -> Place {
    let mut indexes = indexes.iter();
    let mut place = Place::new();
    for (end, is_list) in ends(field) {
        let first = declared.iter().position(|(other, _)| {
            other
                .strip_prefix(&field[..end])
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        });
        place.push(if is_list {
            indexes.next().copied().unwrap_or_default()
        } else {
            first.unwrap_or_default()
        });
    }
    place
}

/// Where each part of a path ends, and whether it is a place in a list.
fn ends(field: &str) -> impl Iterator<Item = (usize, bool)> + '_ {
    let breaks = field.char_indices().filter(|(_, letter)| matches!(letter, '.' | '[')).map(|(at, _)| at);
    breaks.chain([field.len()]).map(|end| (end, field[..end].ends_with(']')))
}

/// The indexes in the path of what is wrong, where it is in that field.
fn indexes(error: &FieldError, field: &str, mistake: Mistake) -> Option<Vec<usize>> {
    let path = match mistake {
        Mistake::Duplicate(_) => error.field.rsplit_once('[')?.0,
        _ => &error.field,
    };
    let mut parts = field.split("[*]");
    let mut rest = path.strip_prefix(parts.next()?)?;
    let mut indexes = Vec::new();
    for part in parts {
        let (index, behind) = rest.strip_prefix('[')?.split_once(']')?;
        indexes.push(index.parse().ok()?);
        rest = behind.strip_prefix(part)?;
    }
    rest.is_empty().then_some(indexes)
}

fn is_of(error: &FieldError, mistake: Mistake) -> bool {
    let problem = match &error.problem {
        Problem::Printed(problem, _) => problem,
        problem => problem,
    };
    let is_required = matches!(problem, Problem::Required);
    let is_duplicate = matches!(problem, Problem::Duplicate(_));
    let is_immutable = error.detail == IMMUTABLE
        || (matches!(problem, Problem::Forbidden) && error.detail.starts_with("updates to "));
    match mistake {
        Mistake::Required => is_required,
        Mistake::Immutable => is_immutable,
        Mistake::Duplicate(_) => is_duplicate,
        Mistake::Form => !is_immutable && matches!(problem, Problem::Invalid(_)),
        Mistake::Other => !is_required && !is_immutable && !is_duplicate,
    }
}

fn described(error: &FieldError, mistake: Mistake, version: Version, object: &Value) -> FieldError {
    match mistake {
        Mistake::Required => FieldError::required(&error.field, ""),
        Mistake::Immutable => FieldError::invalid(&error.field, Value::Null, IMMUTABLE),
        // The whole item is told, not only its key.
        Mistake::Duplicate(of) => match find(object, &error.field) {
            Some(item) => {
                let told = FieldError::duplicate(&error.field, Value::Null);
                told.printed(printed::of_type(version, of, item))
            }
            None => error.clone(),
        },
        Mistake::Form | Mistake::Other => error.clone(),
    }
}

/// The value at a path of fields and indexes.
fn find<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut parts = path.split(['.', '[']);
    parts.try_fold(object, |value, part| match part.strip_suffix(']') {
        Some(index) => value.get(index.parse::<usize>().ok()?),
        None => value.get(part),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_declared_is_told_last_and_once() {
        let declared = [("rules[*].verbs", Mistake::Required), ("class", Mistake::Immutable)];
        let verbs = |at: u8| FieldError::required(format!("rules[{at}].verbs"), "at least one");
        let other = FieldError::required("rules[0].verbs[0]", "not this one");
        let class = FieldError::forbidden("class", "updates to class are forbidden.");
        let mut errors = vec![verbs(0), class, verbs(1), verbs(0), other.clone()];
        put_last(Version::V1_37, &declared, &json!({}), &mut errors);
        let required = |at: u8| FieldError::required(format!("rules[{at}].verbs"), "");
        let immutable = FieldError::invalid("class", json!(null), IMMUTABLE);
        assert_eq!(errors, [other, required(0), required(1), immutable]);
    }

    #[test]
    fn what_is_declared_comes_as_the_object_is_walked_through() {
        let declared = [
            ("spec.results", Mistake::Duplicate("resource/v1.DeviceRequest")),
            ("spec.results[*].driver", Mistake::Other),
            ("spec.results[*].pool", Mistake::Required),
            ("spec.results[*].pool", Mistake::Other),
            ("spec.config[*].source", Mistake::Required),
        ];
        let object = json!({"spec": {"results": [{}, {"name": "<a>"}]}});
        let invalid = |at: &str| FieldError::invalid(format!("spec.{at}"), "x", "");
        let required = |at: &str| FieldError::required(format!("spec.{at}"), "");
        let mut errors = vec![
            required("config[0].source"),
            invalid("results[1].driver"),
            invalid("results[0].driver"),
            invalid("results[10].driver"),
            FieldError::duplicate("spec.results[1]", "a"),
            required("results[0].pool"),
            invalid("results[1].pool"),
        ];
        put_last(Version::V1_37, &declared, &object, &mut errors);
        let repeated = FieldError::duplicate("spec.results[1]", json!(null));
        let in_order = [
            repeated.printed(r#"{"name":"\u003ca\u003e"}"#),
            invalid("results[0].driver"),
            required("results[0].pool"),
            invalid("results[1].driver"),
            invalid("results[1].pool"),
            invalid("results[10].driver"),
            required("config[0].source"),
        ];
        assert_eq!(errors, in_order);
    }
}
