//! Every rule of a signature and of its options, each a small function with its own message. All are
//! checked; none stops at the first mistake.

mod batch;
mod contract;
mod name;
mod options;
mod parameters;
mod signature;

pub(crate) use self::{
    name::name_of_step,
    options::{check as options, check_contract as options_of_contract},
    signature::{check as signature, check_contract as contract, has_a_body as body, is_method},
};
