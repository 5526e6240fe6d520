/** Kills the process groups of programs that this process has started. */
import type { ChildProcess } from "node:child_process"

/**
 * Kills a process that leads a process group, and with it the processes that it has started, such as the children of a shell.
 * Those that have left the group stay alive. On Windows, only the process itself is killed.
 */
export const killGroup = (child: ChildProcess): void => {
  try {
    if (process.platform !== "win32" && child.pid !== undefined) process.kill(-child.pid, "SIGKILL")
    else child.kill("SIGKILL")
  } catch {
    // No process of the group is left.
  }
}
