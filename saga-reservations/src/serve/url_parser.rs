//! Addresses among the options. An error does not repeat them, since they may contain a password.

use std::ffi::OsStr;
use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};

/// Reads an address.
pub(super) fn url<T>() -> UrlParser<T> {
    UrlParser(PhantomData)
}

pub(super) struct UrlParser<T>(PhantomData<fn() -> T>);

impl<T> Clone for UrlParser<T> {
    fn clone(&self) -> Self {
        url()
    }
}

impl<T> TypedValueParser for UrlParser<T>
where
    T: FromStr<Err: Display> + Clone + Send + Sync + 'static,
{
    type Value = T;

    fn parse_ref(&self, command: &Command, option: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        value.to_string_lossy().parse().map_err(|error| {
            let option = option.map(ToString::to_string).unwrap_or_default();
            Error::raw(ErrorKind::ValueValidation, format!("invalid value for '{option}': {error}\n")).with_cmd(command)
        })
    }
}
