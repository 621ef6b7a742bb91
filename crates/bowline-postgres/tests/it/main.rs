//! The engine on a real server. `tests/stores/run` starts one and names it in `BOWLINE_STORE_POSTGRES`.

mod contract;
mod restart;
mod server;
mod tls;
