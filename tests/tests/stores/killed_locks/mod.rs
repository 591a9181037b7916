//! S-LOCK-1, S-LOCK-2, S-LOCK-5: semantic locks and locks of steps, while the processes that have them are killed.

mod bank;
mod child;
mod kills;
mod transfer;
