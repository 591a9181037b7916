use anyhow::bail;

/// A PostgreSQL URL without the parameter `pgbouncer`, and whether it says that a pooler stands in front of the server.
pub(super) fn pooler_in(url: &str) -> anyhow::Result<(String, bool)> {
    let Some((place, parameters)) = url.split_once('?') else { return Ok((url.to_owned(), false)) };
    let mut pgbouncer = false;
    let mut others = Vec::new();
    for parameter in parameters.split('&') {
        match parameter.split_once('=') {
            Some(("pgbouncer", "true")) => pgbouncer = true,
            Some(("pgbouncer", "false")) => pgbouncer = false,
            _ if parameter.split('=').next() == Some("pgbouncer") => {
                bail!("in the URL of --store pgbouncer is true or false, as in postgres://host/database?pgbouncer=true")
            }
            _ => others.push(parameter),
        }
    }
    let mark = if others.is_empty() { "" } else { "?" };
    Ok((format!("{place}{mark}{}", others.join("&")), pgbouncer))
}

/// A URL as it may be shown, also one that cannot be read: what may be a password in it is not.
pub fn without_password(url: &str) -> String {
    let (url, hidden) = match url.split_once('?') {
        Some((url, _)) => (url, "?***"),
        None => (url, ""),
    };
    let shown = match url.rsplit_once('@') {
        Some((access, place)) => {
            let (scheme, access) = access.split_once("://").map_or(("", access), |(scheme, access)| (scheme, access));
            let mark = if scheme.is_empty() { "" } else { "://" };
            match access.split_once(':') {
                Some((user, _)) => format!("{scheme}{mark}{user}:***@{place}"),
                None => url.to_owned(),
            }
        }
        None => url.to_owned(),
    };
    shown + hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_that_a_pooler_stands_in_front() {
        for (url, plain, pgbouncer) in [
            ("postgres://h/d", "postgres://h/d", false),
            ("postgres://h/d?pgbouncer=true", "postgres://h/d", true),
            ("postgres://h/d?sslmode=require&pgbouncer=true", "postgres://h/d?sslmode=require", true),
            ("postgres://h/d?pgbouncer=false", "postgres://h/d", false),
        ] {
            assert_eq!(pooler_in(url).expect("a good URL"), (plain.to_owned(), pgbouncer));
        }
        for url in ["postgres://h/d?pgbouncer=yes", "postgres://h/d?pgbouncer"] {
            assert!(pooler_in(url).expect_err(url).to_string().contains("pgbouncer is true or false"));
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        for (url, shown) in [
            ("postgres://u:secret@h:1/d", "postgres://u:***@h:1/d"),
            ("postgres://u:sec@ret@h/d", "postgres://u:***@h/d"),
            ("postgres://u@h/d", "postgres://u@h/d"),
            ("postgres://u@h:5432/d", "postgres://u@h:5432/d"),
            ("postgres://us@er:secret@h/d", "postgres://us@er:***@h/d"),
            ("amqp:/u:secret@h", "amqp:***@h"),
            ("u:secret@h", "u:***@h"),
            ("postgres://h/d?password=secret", "postgres://h/d?***"),
            ("sqlite:order-rig.db", "sqlite:order-rig.db"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
