# An agent in Python with OpenAI's client, which finds the model by OPENAI_BASE_URL and OPENAI_API_KEY.
# `npx effect eval python-openai.yaml` evaluates it, after `pip install openai`.
import json
import os
import sys

from openai import OpenAI

task = json.load(sys.stdin)
completion = OpenAI().chat.completions.create(
    model=os.environ["EFFECT_RL_MODEL"],
    messages=[
        {"role": "system", "content": "Answer with the number alone."},
        {"role": "user", "content": task["text"]},
    ],
)
print(completion.choices[0].message.content)
