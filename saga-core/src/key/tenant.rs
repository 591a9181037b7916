//! Tenants and namespaces.

use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::{Serialize, Serializer};

use super::name::{InvalidName, TENANT_BYTES_MAX, check, is_name_byte};

/// A tenant: up to 32 bytes of `[A-Za-z0-9_.-]`. The default tenant has the empty name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(Arc<str>);

impl Tenant {
    /// Makes a tenant of a text.
    ///
    /// # Errors
    /// Says what is wrong with an empty or over-long text, and with a byte outside `[A-Za-z0-9_.-]`.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidName> {
        let text = text.as_ref();
        check("tenant", text, TENANT_BYTES_MAX, "ASCII letters, digits, `_`, `.` and `-`", is_name_byte)?;
        Ok(Self(text.into()))
    }

    /// The tenant's name; empty for the default tenant.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the default tenant.
    pub fn is_default(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads a stored tenant. The empty text is the default tenant.
    ///
    /// # Errors
    /// Those of [`Tenant::new`].
    pub fn from_stored(text: &str) -> Result<Self, InvalidName> {
        if text.is_empty() { Ok(Self::default()) } else { Self::new(text) }
    }
}

impl Default for Tenant {
    fn default() -> Self {
        Self::default_ref().clone()
    }
}

impl Tenant {
    /// The default tenant. Every start of an application without tenants asks for it.
    pub(crate) fn default_ref() -> &'static Self {
        static DEFAULT: LazyLock<Tenant> = LazyLock::new(|| Tenant("".into()));
        &DEFAULT
    }
}

/// A prefix that distinguishes the external keys of this service or environment from those of others that use the same account.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Namespace(Arc<str>);

impl Namespace {
    /// Makes a namespace of a text.
    ///
    /// # Errors
    /// Says what is wrong with an empty or over-long text, and with a byte outside `[A-Za-z0-9_.-]`.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidName> {
        let text = text.as_ref();
        check("namespace", text, TENANT_BYTES_MAX, "ASCII letters, digits, `_`, `.` and `-`", is_name_byte)?;
        Ok(Self(text.into()))
    }

    /// The namespace's text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for Tenant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
