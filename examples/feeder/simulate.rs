// Replays a trace on one resource, from Rust through the C interface.
//
//   CPP=$(dirname "$(chakra feeder --include-dir)")
//   c++ -std=c++17 -O2 -fPIC -shared -I "$CPP/include" "$CPP/src/feeder_c.cpp" -o libfeeder_c.so
//   rustc -O -L . simulate.rs && LD_LIBRARY_PATH=. ./simulate trace.0.et

use std::ffi::{c_char, c_int, CStr, CString};
use std::ptr::{null, null_mut};

#[repr(C)]
struct Error {
    code: i32,
    node: u64,
    other: u64,
    offset: u64,
    message: [c_char; 232],
}

#[repr(C)]
struct Node {
    id: u64,
    start_ns: i64,
    duration_ns: i64,
    duration_micros: u64,
    kind: u32,
    has_start: u8,
    has_duration: u8,
    is_cpu_op: u8,
    has_is_cpu_op: u8,
    name: *const c_char,
    name_size: usize,
    message: *const u8,
    message_size: usize,
}

enum Feeder {}

#[link(name = "feeder_c")]
extern "C" {
    fn chakra_et_open(
        path: *const c_char,
        options: *const u8,
        out: *mut *mut Feeder,
        error: *mut Error,
    ) -> c_int;
    fn chakra_et_take_next(feeder: *mut Feeder, out: *mut Node, error: *mut Error) -> c_int;
    fn chakra_et_done(feeder: *mut Feeder, id: u64, error: *mut Error) -> c_int;
    fn chakra_et_attr_int(node: *const Node, name: *const c_char, out: *mut i64) -> c_int;
    fn chakra_et_close(feeder: *mut Feeder);
}

const NODE: c_int = 0;
const FINISHED: c_int = 2;

fn said(error: &Error) -> String {
    unsafe { CStr::from_ptr(error.message.as_ptr()) }.to_string_lossy().into_owned()
}

fn replay(path: &str) -> Result<(u64, i64, i64), String> {
    let (mut count, mut now, mut bytes) = (0, 0, 0);
    let path = CString::new(path).map_err(|e| e.to_string())?;
    let comm_size = CString::new("comm_size").unwrap();
    unsafe {
        let mut error: Error = std::mem::zeroed();
        let mut node: Node = std::mem::zeroed();
        let mut feeder = null_mut();
        if chakra_et_open(path.as_ptr(), null(), &mut feeder, &mut error) != 0 {
            return Err(said(&error));
        }
        let mut answer = chakra_et_take_next(feeder, &mut node, &mut error);
        while answer == NODE {
            count += 1;
            now += node.duration_ns;
            let mut size = 0;
            if chakra_et_attr_int(&node, comm_size.as_ptr(), &mut size) != 0 {
                bytes += size;
            }
            if chakra_et_done(feeder, node.id, &mut error) != 0 {
                break;
            }
            answer = chakra_et_take_next(feeder, &mut node, &mut error);
        }
        chakra_et_close(feeder);
        if answer != FINISHED {
            return Err(format!("nodes are left, code {answer}: {}", said(&error)));
        }
    }
    Ok((count, now, bytes))
}

fn main() {
    let path = std::env::args().nth(1).expect("usage: simulate TRACE");
    match replay(&path) {
        Ok((count, now, bytes)) => println!("{count} nodes, {now} ns, {bytes} bytes"),
        Err(said) => {
            eprintln!("{path}: {said}");
            std::process::exit(1);
        }
    }
}
