import { execFileSync } from "node:child_process"

/** Returns the index.txt that a folder must have, made by the system's own tools. A lease is no result. */
export const found = (folder: string): string =>
  execFileSync(
    "sh",
    ["-c", "find . -type f -not -name '.git*' -not -path './.git/*' -not -name .DS_Store -not -name run.lease | sort"],
    {
      cwd: folder,
      encoding: "utf8",
      env: { ...process.env, LC_ALL: "C" },
    },
  ).replace("./index.txt\n", "")
