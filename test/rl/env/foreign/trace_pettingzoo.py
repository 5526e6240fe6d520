"""Plays a game of PettingZoo, and prints what each agent sees: the reference for pettingzoo.slow.test.ts."""
import importlib, json, sys
import numpy as np, pettingzoo

given = json.loads(sys.stdin.read())
id, api, seeds = given["id"], given["api"], given["seeds"]
if "/" in id: env = pettingzoo.make(api, id, **given["options"])
else: env = getattr(importlib.import_module(id), "env" if api == "aec" else "parallel_env")(**given["options"])
agents = env.possible_agents

def seen(observation, info):
    """The numbers of an observation, and the mask if there is one."""
    mask = info.get("action_mask")
    if isinstance(observation, dict): observation, mask = observation["observation"], observation["action_mask"]
    if np.ndim(observation) == 3: observation = np.moveaxis(observation, 2, 0)
    return [[float(np.float32(x)) for x in np.ravel(observation)], None if mask is None else [float(x) for x in mask]]

def to_action(agent, numbers):
    space = env.action_space(agent)
    return int(numbers[0]) if hasattr(space, "n") else np.array(numbers, space.dtype)

number = lambda reward: float(np.float32(reward))
rows, episode = [], 0
if api == "parallel":
    observations, infos = env.reset(seed=seeds[0])
    rows.append({agent: seen(observations[agent], infos[agent]) for agent in env.agents})
    for actions in given["actions"]:
        present = list(env.agents)
        chosen = {agent: to_action(agent, actions[agents.index(agent)]) for agent in present}
        observations, rewards, terminations, truncations, infos = env.step(chosen)
        rows.append([number(rewards[agent]) if agent in present else 0.0 for agent in agents])
        if env.agents:
            rows.append({agent: seen(observations[agent], infos[agent]) for agent in env.agents})
            continue
        ends = lambda agent: seen(observations[agent], infos[agent])[:1] + [bool(terminations[agent]), bool(truncations[agent])]
        rows.append({agent: ends(agent) for agent in present})
        episode += 1
        observations, infos = env.reset(seed=seeds[episode])
        rows.append({agent: seen(observations[agent], infos[agent]) for agent in env.agents})
else:
    actions = iter(given["actions"])
    while True:
        env.reset(seed=seeds[episode])
        episode, ends = episode + 1, {}
        for agent in env.agent_iter():
            observation, reward, termination, truncation, info = env.last()
            shown = seen(observation, info)
            if termination or truncation:
                ends[agent] = [shown[0], number(reward), bool(termination), bool(truncation)]
                env.step(None)
                continue
            rows.append([agent, *shown, number(reward)])
            action = next(actions, None)
            if action is None: break
            env.step(to_action(agent, action))
        if action is None: break
        rows.append(ends)
print(json.dumps(rows))
