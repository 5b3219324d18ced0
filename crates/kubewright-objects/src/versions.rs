//! Fields that are optional in some versions of k8s-openapi and required in others (`Deployment.spec` is required since v1_37): how to
//! read and write them so that it compiles with each version, `v1_33` to `v1_37`.

/// The value of a field of type `T` or `Option<T>`: `optional::<DeploymentSpec>(&deployment.spec)`.
pub fn optional<'a, T>(field: impl Into<Option<&'a T>>) -> Option<&'a T> {
    field.into()
}

/// A value for a field of type `T` or `Option<T>`.
pub fn field<T, F: From<T>>(value: T) -> F {
    value.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_read_and_written_alike_whether_it_is_optional_or_not() {
        let (required, is, is_not) = (1, Some(1), None);
        assert_eq!(
            [optional::<i32>(&required), optional::<i32>(&is), optional::<i32>(&is_not)],
            [Some(&1), Some(&1), None]
        );
        let (required, is): (i32, Option<i32>) = (field(1), field(1));
        assert_eq!((required, is), (1, Some(1)));
    }
}
