//! Choices: which arm runs, what is read behind them, what is undone, and what a person can do.

mod arms;
mod building;
mod shipping;
