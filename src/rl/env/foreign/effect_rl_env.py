"""Steps Gymnasium envs for effect-rl: reads requests from stdin, writes replies to stdout (see docs/foreign-envs.md)."""
import ctypes, importlib, json, os, signal, struct, sys, traceback, zlib

requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # What envs print must not come between the replies.
signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for effect-rl, which then ends this process.
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # Ends this process with its parent, even in an endless loop of an env.

def read(size):
    data = requests.read(size)
    if len(data) < size: os._exit(0)  # effect-rl has ended.
    return data

def send(status, *parts):
    replies.write(b"".join([struct.pack("<II", sum(map(len, parts)), status), *parts]))
    replies.flush()

def parts_of(space, of):
    return [of[key] for key in (space.spaces if type(space).__name__ == "Dict" else range(len(space.spaces)))]

def is_box(space): return type(space).__name__ == "Box"

def is_image(space):  # effect-rl has the channels of an image first, most envs of Gymnasium have them last.
    return is_box(space) and space.dtype == np.uint8 and len(space.shape) == 3 and space.shape[2] in (1, 3)

def bounds(of):  # One number if all are equal; null if there is no bound.
    numbers = [float(x) if np.isfinite(x) else None for x in (of.ravel()[:1] if (of == of.ravel()[0]).all() else of.ravel())]
    return numbers if len(numbers) == of.size else numbers[0]

def describe(space):
    kind = type(space).__name__
    if is_box(space):
        low, high = (np.moveaxis(b, 2, 0) if is_image(space) else b for b in (space.low, space.high))
        return {"type": kind, "shape": list(low.shape), "low": bounds(low), "high": bounds(high)}
    if kind in ("Discrete", "MultiBinary"): return {"type": kind, "n": int(np.prod(space.n))}
    if kind == "MultiDiscrete": return {"type": kind, "nvec": np.ravel(space.nvec).tolist()}
    if kind not in ("Tuple", "Dict"): return {"type": kind}
    keys = {"keys": list(map(str, space.spaces))} if kind == "Dict" else {}
    return {"type": kind, "spaces": [describe(part) for part in parts_of(space, space.spaces)], **keys}

def flatten(space, value):
    if type(space).__name__ in ("Tuple", "Dict"):
        return np.concatenate([flatten(*pair) for pair in zip(parts_of(space, space.spaces), parts_of(space, value))])
    if is_image(space): return np.moveaxis(value, 2, 0).ravel()
    return np.ravel(value) - np.ravel(space.start) if hasattr(space, "start") else np.ravel(value)

def choices_of(space):  # The number of choices of each element of an action; 0 if there are none.
    return np.ravel(getattr(space, "n" if type(space).__name__ == "Discrete" else "nvec", 0))

def rows_for(space, count, mask_size):  # The observations of a batch.
    dtype = "uint8" if is_box(space) and space.dtype == np.uint8 else "float32"
    return np.zeros((count, len(flatten(space, space.sample())) + mask_size), dtype)

def describe_env(env, space, action_space):
    described = {"observationSpace": describe(space), "actionSpace": describe(action_space)}
    dtype = str(rows_for(space, 0, 0).dtype)
    return {**described, "observationType": dtype, "renders": getattr(env, "render_mode", None) == "rgb_array"}

def to_actions(space, rows):
    if type(space).__name__ == "Discrete": return (rows.ravel() + space.start).tolist()
    return (rows + np.ravel(getattr(space, "start", 0))).astype(space.dtype).reshape(-1, *space.shape)

def row_of(seen, info, is_over=False):  # The observation, and the mask of the choices that are allowed, if there are masks.
    if not mask_size: return flat(seen)
    mask = np.ones(mask_size) if is_over else np.concatenate([np.ravel(part) for part in info["action_mask"]])
    return np.concatenate([flat(seen), mask])

def scored(env):  # Wraps an env: sums its own rewards, before other wrappers change them, and counts its games.
    class Scored(gymnasium.Wrapper):
        score, left, games = 0.0, 0.0, 0  # The scores that were not sent yet: of this game, and of the one before.

        def reset(self, **given):
            self.games, self.left, self.score = self.games + 1, self.left + self.score, 0.0
            return self.env.reset(**given)

        def step(self, action):
            seen, reward, terminated, truncated, info = self.env.step(action)
            self.score += float(reward)
            return seen, reward, terminated, truncated, info

        def take(self):  # Wrappers may take steps to begin a game: what these earn counts for the game's first step.
            taken, self.score = self.score, 0.0
            return taken

        def take_left(self):
            taken, self.left = self.left, 0.0
            return taken

    return Scored(env)

def leave_game(env):  # Makes the next reset begin a new game, also where a wrapper would go on with the next life.
    while hasattr(env, "env"):
        if "leave_game" in vars(type(env)): env.leave_game()
        env = env.env

def wrapper_named(name):
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module) if module else gymnasium.wrappers, attribute)

def make(name, options, wrappers, keeps_scores):
    try: env = gymnasium.make(name, **{"render_mode": "rgb_array", **options})
    except TypeError: env = gymnasium.make(name, **options)  # Its pictures have no mode.
    if keeps_scores: scores.append(env := scored(env))
    for wrapper in wrappers:
        given = {key: value for key, value in wrapper.items() if key != "name"}
        env = wrapper_named(wrapper["name"])(env, **given)
    return env

def make_envs(name, options, count):
    global envs, action_space, flat, mask_size, observations, scores
    wrappers, masks, scores = options.pop("wrappers", []), options.pop("action_masks", True), []
    keeps_scores = options.pop("game_scores", False)
    envs = [make(name, options, wrappers, keeps_scores) for _ in range(count)]
    space, action_space, spec = envs[0].observation_space, envs[0].action_space, envs[0].spec
    flat = np.ravel if is_box(space) and not is_image(space) else lambda value: flatten(space, value)
    masks = masks and choices_of(action_space).all() and "action_mask" in envs[0].reset(seed=0)[1]
    mask_size = int(choices_of(action_space).sum()) if masks else 0
    observations = rows_for(space, len(envs), mask_size)
    described = {**describe_env(envs[0], space, action_space), "hasActionMask": bool(mask_size), "hasScores": keeps_scores}
    return {**described, "maxSteps": spec and spec.max_episode_steps, "rewardThreshold": spec and spec.reward_threshold}

def exchange(body):
    global index
    count = len(envs)
    seeds, commands = np.frombuffer(body, "<u4", count), body[-count:]
    actions = np.frombuffer(body[4 * count : -count], "<f4" if is_box(action_space) else "<i4").reshape(count, -1)
    actions, rewards, terminated, truncated, finals = to_actions(action_space, actions), [0.0] * count, [0] * count, [0] * count, []
    scored = np.zeros(len(scores), "<f4")
    for index, env in enumerate(envs):
        ends = commands[index] == 3
        if commands[index] in (1, 2):
            seen, rewards[index], terminated[index], truncated[index], info = env.step(actions[index])
            observations[index] = row_of(seen, info, terminated[index])
            ends = terminated[index] or truncated[index] or commands[index] == 2
            if ends: finals.append(observations[index].tobytes())
            if scores: scored[index] = scores[index].take()
        if ends:
            start(index, env, int(seeds[index]), terminated, truncated[index] or commands[index] != 1)
            if scores: scored[index] += scores[index].take_left()
    flags = np.array([terminated, truncated], "u1")
    send(0, np.array(rewards, "<f4").tobytes(), observations.tobytes(), *finals, flags.tobytes(), scored.tobytes())

def start(index, env, seed, terminated, is_left):  # Begins an episode; one that is only the next life is flagged by a 2.
    if is_left: leave_game(env)
    games = scores[index].games if scores else 0
    observations[index] = row_of(*env.reset(seed=seed))
    if scores and terminated[index] and not is_left and scores[index].games == games: terminated[index] = 2

def picture(env):
    pixels = np.ascontiguousarray(env.render(), "u1")
    height, width, _ = pixels.shape
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    lines = zlib.compress(b"".join(b"\0" + line.tobytes() for line in pixels), 6)
    return struct.pack("<II", width, height), b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", lines) + chunk(b"IEND", b"")

def serve(make_envs, exchange, env_at):
    global index, np, gymnasium
    while True:
        length, kind = struct.unpack("<II", read(8))
        body, index = read(length), 0
        try:
            if kind == 0:
                import gymnasium, numpy as np
                given = json.loads(body)
                described = make_envs(given["env"], given["options"], max(1, given["count"]))
                send(0, json.dumps({"protocol": 1, **described}).encode())
            elif kind == 1: exchange(body)
            else: send(0, *picture(env_at(struct.unpack("<I", body)[0])))
        except Exception as error:
            message = "".join(traceback.format_exception_only(type(error), error)).strip()
            if isinstance(error, ModuleNotFoundError):
                message = f"Python has no module {error.name}; install it, for example by {sys.executable} -m pip install {error.name}, or set the env's option `python` to a Python that has it"
            send(1, json.dumps({"message": message, "index": index, "traceback": traceback.format_exc()}).encode())

if __name__ == "__main__": serve(make_envs, exchange, lambda index: envs[index])
