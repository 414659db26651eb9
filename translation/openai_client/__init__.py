"""The dialect of clients that speak OpenAI's Chat Completions: requests, answers and errors."""
