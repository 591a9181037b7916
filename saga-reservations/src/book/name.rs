use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest key and the longest name of a resource. The key of a step is shorter.
pub const NAME_BYTES_MAX: usize = 512;

/// A key or a name that cannot be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} {name:?} is refused: it must have 1 to {NAME_BYTES_MAX} bytes without control characters; choose another one"
)]
pub struct InvalidName {
    what: &'static str,
    name: String,
}

fn check(what: &'static str, name: &str) -> Result<(), InvalidName> {
    if (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.chars().any(char::is_control) {
        return Ok(());
    }
    // The name may be a megabyte.
    Err(InvalidName { what, name: name.chars().take(64).collect() })
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident: $what:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks the text.
            ///
            /// # Errors
            /// When it is empty, longer than [`NAME_BYTES_MAX`], or has control characters.
            pub fn new(text: impl Into<String>) -> Result<Self, InvalidName> {
                let text = text.into();
                check($what, &text)?;
                Ok(Self(text))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(text: String) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )*};
}

names! {
    /// The key of a reservation, chosen by its client before it asks: one key is one reservation, however often the request
    /// is repeated.
    ReservationKey: "the key";
    /// The name of what is reserved, such as `seat/LH-400`.
    ResourceName: "the resource name";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_name_is_refused() {
        for name in ["", "a\nb", "\u{7f}", &"a".repeat(513)] {
            assert!(ReservationKey::new(name).is_err(), "{name:?}");
        }
        for name in ["a", "seat/LH-400", "Sitz äöü", &"a".repeat(512)] {
            assert_eq!(ResourceName::new(name).unwrap().as_str(), name);
        }
        assert!(serde_json::from_str::<ResourceName>("\"\"").is_err());
    }
}
