// The env of corridor.c in plain JavaScript, without any package.
//   ForeignEnv.command(["node", "examples/foreign-envs/corridor.mjs"], { id: "corridor" })
import { readSync, writeSync } from "node:fs"

/** Reads exactly so many bytes from the standard input. */
const read = (size) => {
  const bytes = Buffer.alloc(size)
  for (let at = 0; at < size;) {
    const count = readSync(0, bytes, at, size - at)
    if (count === 0) process.exit() // effect-rl has ended.
    at += count
  }
  return bytes
}

const reply = (status, body) => {
  const header = Buffer.alloc(8)
  header.writeUInt32LE(body.length, 0)
  header.writeUInt32LE(status, 4)
  const bytes = Buffer.concat([header, body])
  for (let at = 0; at < bytes.length;) at += writeSync(1, bytes, at)
}

const start = (seed) => ({ random: (seed | 1) >>> 0, at: 0 })

const step = (env, action) => {
  env.random = (Math.imul(env.random, 1664525) + 1013904223) >>> 0
  const wind = env.random >>> 24 < 26 ? -1 : 0 // One step in ten, it blows.
  env.at = Math.max(0, env.at + (action === 1 ? 1 : -1) + wind)
}

const description = {
  protocol: 1,
  observationType: "float32",
  maxSteps: 60,
  observationSpace: { type: "Box", shape: [1], low: 0, high: 10 },
  actionSpace: { type: "Discrete", n: 2 },
}

let envs = []
while (true) {
  const header = read(8)
  const body = read(header.readUInt32LE(0))
  if (header.readUInt32LE(4) === 0) {
    envs = Array.from({ length: JSON.parse(body).count }, () => start(0))
    reply(0, Buffer.from(JSON.stringify(description)))
    continue
  }
  // Seeds, actions and commands; the answer has rewards, observations, final observations and flags.
  const count = envs.length
  const rewards = new Float32Array(count)
  const flags = new Uint8Array(2 * count)
  const finals = []
  for (let i = 0; i < count; i++) {
    const command = body[8 * count + i]
    let ends = command === 3
    if (command === 1 || command === 2) {
      step(envs[i], body.readInt32LE(4 * count + 4 * i))
      flags[i] = envs[i].at >= 10 ? 1 : 0
      rewards[i] = flags[i] === 1 ? 1 : -0.01
      ends = flags[i] === 1 || command === 2
      if (ends) finals.push(envs[i].at)
    }
    if (ends) envs[i] = start(body.readUInt32LE(4 * i))
  }
  const seen = Float32Array.from([...envs.map(({ at }) => at), ...finals])
  reply(0, Buffer.concat([Buffer.from(rewards.buffer), Buffer.from(seen.buffer), flags]))
}
