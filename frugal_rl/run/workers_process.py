"""The process that weighs workers, which import its main module once more: here it is empty.

python -m frugal_rl.run.workers_process < request.json
"""

if __name__ == "__main__":
    from frugal_rl.run.weigh_workers import main

    main()
