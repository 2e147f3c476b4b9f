//! What the processor has, also where only the operating system may tell.

use std::sync::OnceLock;

use logseg_core::Cpu;

/// The token with all that this machine allows. Asked once: a virtual machine takes
/// microseconds to answer.
#[must_use]
pub fn detect() -> Cpu {
    static CPU: OnceLock<Cpu> = OnceLock::new();
    *CPU.get_or_init(ask)
}

fn ask() -> Cpu {
    let cpu = Cpu::detect();
    #[cfg(target_arch = "aarch64")]
    if std::arch::is_aarch64_feature_detected!("crc") {
        // SAFETY: the operating system says that the processor has them.
        return unsafe { cpu.assume_crc() };
    }
    cpu
}
