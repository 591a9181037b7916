//! Every rule of a signature and of its options, each a small function with its own message. All are
//! checked; none stops at the first mistake.

mod options;
mod parameters;
mod signature;

pub(crate) use self::{
    options::{check as options, name_of_step},
    signature::{check as signature, is_method},
};
