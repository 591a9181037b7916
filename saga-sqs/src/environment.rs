//! What the variables of the environment say, under the names that all of AWS's tools know.

use aws_sdk_sqs::config::Credentials;

/// What was found.
#[derive(Default)]
pub(crate) struct Variables {
    pub(crate) region: Option<String>,
    pub(crate) sqs_endpoint: Option<String>,
    pub(crate) sns_endpoint: Option<String>,
    pub(crate) credentials: Option<Credentials>,
}

impl Variables {
    /// Reads them; `variable` gives the value of one.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&str]| names.iter().find_map(|name| variable(name).filter(|value| !value.is_empty()));
        let credentials = || {
            let (id, secret) = (first(&["AWS_ACCESS_KEY_ID"])?, first(&["AWS_SECRET_ACCESS_KEY"])?);
            Some(Credentials::new(id, secret, first(&["AWS_SESSION_TOKEN"]), None, "environment"))
        };
        Self {
            region: first(&["AWS_REGION", "AWS_DEFAULT_REGION"]),
            sqs_endpoint: first(&["AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL"]),
            sns_endpoint: first(&["AWS_ENDPOINT_URL_SNS", "AWS_ENDPOINT_URL"]),
            credentials: credentials(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Variables {
        Variables::read(|name| variables.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn a_region_and_endpoints_are_found() {
        let found = read(&[("AWS_DEFAULT_REGION", "b"), ("AWS_ENDPOINT_URL", "x"), ("AWS_ENDPOINT_URL_SNS", "y")]);
        assert_eq!(found.region.as_deref(), Some("b"));
        assert_eq!((found.sqs_endpoint.as_deref(), found.sns_endpoint.as_deref()), (Some("x"), Some("y")));
        let found = read(&[("AWS_DEFAULT_REGION", "b"), ("AWS_REGION", "a")]);
        assert_eq!((found.region.as_deref(), found.sqs_endpoint), (Some("a"), None));
    }

    #[test]
    fn credentials_need_a_key_and_a_secret() {
        let both = [("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s")];
        assert!(read(&both[..1]).credentials.is_none() && read(&both[1..]).credentials.is_none());
        assert!(read(&[both[0], ("AWS_SECRET_ACCESS_KEY", "")]).credentials.is_none());
        assert_eq!(read(&both).credentials.map(|found| found.session_token().map(str::to_owned)), Some(None));
        let found = read(&[both[0], both[1], ("AWS_SESSION_TOKEN", "t")]).credentials.unwrap();
        assert_eq!((found.access_key_id(), found.secret_access_key(), found.session_token()), ("k", "s", Some("t")));
    }
}
