//! What a step of another service costs, and what becomes of messages and replies when something fails.

mod commit_fates;
mod commits;
mod inline_replies;
mod services;
mod steps;
mod transport;
