//! An error as a person reads it.

use std::error::Error;

use sqlx::postgres::PgDatabaseError;

/// An error and what caused it, on one line. A cause that was said already is not said again.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut said = String::new();
    for cause in error.chain() {
        let text = text_of(cause);
        if !said.contains(text.trim()) {
            let colon = if said.is_empty() { "" } else { ": " };
            said = said + colon + &text;
        }
    }
    said
}

/// What one error says by itself.
fn text_of(error: &(dyn Error + 'static)) -> String {
    let text = if let Some(sqlx::Error::Database(answer)) = error.downcast_ref() {
        answer.message().to_owned()
    } else if let Some(sqlx::Error::Io(problem)) = error.downcast_ref() {
        problem.to_string()
    } else if let Some(answer) = error.downcast_ref::<PgDatabaseError>() {
        // Its own text names the line of the server's source code.
        answer.message().to_owned()
    } else {
        error.to_string()
    };
    text.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use std::io;

    use anyhow::Context as _;
    use saga_core::store::{StoreError, StoreErrorKind};

    use super::*;

    #[test]
    fn a_cause_that_was_said_is_not_said_again() {
        let refused = || io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
        let store = StoreError::new(StoreErrorKind::Unavailable, "open", "shop cannot be opened: connection refused")
            .with_source(sqlx::Error::Io(refused()));
        assert_eq!(sentence(&store.into()), "open: shop cannot be opened: connection refused");
        let error = Err::<(), _>(sqlx::Error::Io(refused())).context("cannot open the\nshop").expect_err("it failed");
        assert_eq!(sentence(&error), "cannot open the shop: connection refused");
    }
}
